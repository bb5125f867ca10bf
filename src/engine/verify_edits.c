#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/verify_unit.h"

enum { SEED = 20261129, DONORS = 8 };

typedef struct setting {
    const char *name, *text;
    double number;
} setting;

/* Parameters of a family: the table's defaults and the settings given. */
static ats_code make_params(ats_arena *arena, const ats_family *family, const setting *settings,
                            int64_t n_settings, ats_param **out, ats_err *err)
{
    ats_param *params = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, family->n_params + 1, &params, err));
    for (int64_t i = 0; i < family->n_params; i++) {
        const ats_param_def *def = &family->params[i];
        const bool words = def->type == ATS_PARAM_WORD || def->type == ATS_PARAM_TEXT;
        const bool given = words ? def->text != NULL : !isnan(def->number);
        params[i].number = words ? (double)NAN : def->number;
        params[i].text = def->text;
        params[i].set = given && !def->required && def->group == NULL;
        for (int64_t s = 0; s < n_settings; s++)
            if (strcmp(settings[s].name, def->name) == 0)
                params[i] = (ats_param){
                    .set = true, .number = settings[s].number, .text = settings[s].text};
    }
    *out = params;
out:
    return rc;
}

static ats_verify_edit *append(ats_verify_unit *unit, const char *label, ats_law_kind kind)
{
    ATS_ASSERT(unit->n_edits < ATS_VERIFY_EDITS);
    ats_verify_edit *edit = &unit->edits[unit->n_edits++];
    *edit = (ats_verify_edit){.label = label, .kind = kind, .duplicated = -1};
    return edit;
}

/* An edit by a perturbation family; one that this sample or layer does not allow is noted. */
static ats_code family_edit(ats_verify_unit *unit, const char *label, ats_law_kind kind,
                            const char *family_kind, ats_position_mode mode, const char *target,
                            const setting *settings, int64_t n_settings, ats_err *err)
{
    const ats_family *family = ats_family_find(family_kind);
    ATS_ASSERT(family != NULL);
    const ats_donor self = {.sample = unit->sample, .attention = unit->attention};
    ats_param *params = NULL;
    ats_built built = {.skipped = false};
    ats_err refusal = {.code = ATS_OK};
    ats_code rc;
    ATS_TRY(make_params(unit->arena, family, settings, n_settings, &params, err));
    const ats_build ctx = {.arena = unit->arena,
                           .capture = unit->capture,
                           .layer = unit->layer,
                           .sample = unit->sample,
                           .attention = unit->attention,
                           .kv_head = unit->kv_head,
                           .n_donors = 1,
                           .donors = &self,
                           .family = family,
                           .params = params,
                           .mode = mode,
                           .seed = SEED,
                           .variant_id = label,
                           .target = target};
    const ats_code built_rc = ats_perturb_build(&ctx, &built, &refusal);
    if (built_rc == ATS_E_MEMORY || built_rc == ATS_E_INTERNAL) {
        *err = refusal;
        return built_rc;
    }
    if (built_rc != ATS_OK || built.skipped)
        return ats_verify_not_applicable(unit, label, built.skipped ? built.reason : refusal.text,
                                         err);
    append(unit, label, kind)->edit = built.edit;
out:
    return rc;
}

static ats_code plain_edit(ats_arena *arena, int64_t n_segments, ats_segment **segments,
                           ats_edit *out, ats_err *err)
{
    const ats_code rc = ATS_NEW0(arena, n_segments, segments, err);
    if (rc == ATS_OK)
        *out = (ats_edit){.n_segments = n_segments, .segments = *segments, .temperature = 1};
    return rc;
}

/* A copy of every row of a region at the row's own position, right after the region. Stored words
 * are widened exactly, so each copy has its original's logit. */
static ats_code copied_rows(ats_verify_unit *unit, const ats_region *region, ats_side *out,
                            ats_err *err)
{
    const ats_problem *p = &unit->problem;
    int64_t count = 0, row = 0, *position = NULL;
    float *k = NULL, *v = NULL;
    for (int64_t r = 0; r < region->n_ranges; r++)
        count += region->ranges[r].stop - region->ranges[r].start;
    ats_code rc;
    ATS_TRY(ATS_NEW(unit->arena, count * p->d_qk, &k, err));
    ATS_TRY(ATS_NEW(unit->arena, count * p->d_v, &v, err));
    ATS_TRY(ATS_NEW(unit->arena, count, &position, err));
    for (int64_t r = 0; r < region->n_ranges; r++)
        for (int64_t i = region->ranges[r].start; i < region->ranges[r].stop; i++, row++) {
            ats_widen(p->k_dtype, p->k, i * p->d_qk, p->d_qk, k + row * p->d_qk);
            ats_widen(p->v_dtype, p->v, i * p->d_v, p->d_v, v + row * p->d_v);
            position[row] = p->key_pos[i];
        }
    *out = (ats_side){.count = count, .k = k, .v = v, .position = position};
out:
    return rc;
}

static ats_code duplicate_edit(ats_verify_unit *unit, const char *target, ats_err *err)
{
    const ats_problem *p = &unit->problem;
    const int64_t at = target != NULL ? ats_span_axis_find(unit->axis, target) : -1;
    if (at < 0 || p->regions[at].n_ranges == 0)
        return ats_verify_not_applicable(unit, "duplicates", "the sample has no span to copy", err);
    if (p->keep != NULL || p->bias != NULL || p->key_segment != NULL)
        return ats_verify_not_applicable(
            unit, "duplicates",
            "stored masks, biases and segments say nothing about inserted rows, so a copy is not "
            "exact",
            err);
    const ats_region *region = &p->regions[at];
    const int64_t after = region->ranges[region->n_ranges - 1].stop;
    const int64_t parts = after < p->n_keys ? 3 : 2;
    ats_segment *segments = NULL;
    ats_edit edit = {.n_segments = 0};
    ats_code rc;
    ATS_TRY(plain_edit(unit->arena, parts, &segments, &edit, err));
    ATS_TRY(copied_rows(unit, region, &edit.side, err));
    segments[0] = (ats_segment){.kind = ATS_SEG_KEEP, .start = 0, .stop = after};
    segments[1] = (ats_segment){.kind = ATS_SEG_ROWS, .start = 0, .stop = edit.side.count};
    if (parts == 3)
        segments[2] = (ats_segment){.kind = ATS_SEG_KEEP, .start = after, .stop = p->n_keys};
    ats_verify_edit *made = append(unit, "duplicates", ATS_LAWS_OVERLAY);
    made->edit = edit;
    made->duplicated = at;
out:
    return rc;
}

/* Every key and the probes moved together. A chunk boundary stays where it is, so the move is a
 * multiple of the chunk. */
static ats_code move_edit(ats_verify_unit *unit, int64_t delta, const char *label, ats_err *err)
{
    ats_segment *segments = NULL;
    ats_edit edit = {.n_segments = 0};
    ats_code rc = plain_edit(unit->arena, 1, &segments, &edit, err);
    if (rc != ATS_OK) return rc;
    segments[0] = (ats_segment){
        .kind = ATS_SEG_KEEP, .start = 0, .stop = unit->problem.n_keys, .delta = delta};
    edit.query_delta = delta;
    append(unit, label, ATS_LAWS_SAME)->edit = edit;
    return ATS_OK;
}

static ats_code moved_edit(ats_verify_unit *unit, ats_err *err)
{
    const ats_layer *layer = unit->layer;
    const int64_t chunk = layer->contract.chunk, delta = chunk > 0 ? chunk : 97;
    int64_t last = 0;
    for (int64_t i = 0; i < unit->sample->n_keys; i++)
        last = unit->sample->position[i] > last ? unit->sample->position[i] : last;
    const char *reason = NULL;
    if (layer->positions == ATS_POSITIONS_ABSOLUTE)
        reason = "absolute position embeddings are already inside q and k, so nothing can be moved";
    else if (layer->positions == ATS_POSITIONS_ROPE && layer->contract.rope.pairs == 0)
        reason = "the capture lacks the layer's RoPE frequencies, so nothing can be moved";
    else if (layer->rope_dynamic)
        reason = "the RoPE frequencies depend on the sequence length, so nothing can be moved";
    else if (layer->max_position > 0 && last + delta >= layer->max_position)
        reason = "the last position is too near the model's largest one to move further";
    if (reason != NULL) return ats_verify_not_applicable(unit, "moved", reason, err);
    return move_edit(unit, delta, "moved", err);
}

ats_code ats_verify_edits(ats_verify_unit *unit, const char *target, ats_err *err)
{
    const int64_t n = unit->problem.n_keys;
    const setting overlay[] = {{"count", NULL, DONORS}};
    const setting mask[] = {
        {"pattern", "slide", 0}, {"width", NULL, n >= 16 ? (double)(n / 8) : 1}, {"at", NULL, 0.5}};
    const setting tau[] = {{"tau", NULL, 2}};
    ats_code rc;
    ATS_TRY(move_edit(unit, 0, "unchanged", err));
    ATS_TRY(moved_edit(unit, err));
    ATS_TRY(duplicate_edit(unit, target, err));
    if (target != NULL) {
        ATS_TRY(family_edit(unit, "overlay", ATS_LAWS_OVERLAY, "distractors", ATS_MODE_OVERLAY,
                            target, overlay, 1, err));
        ATS_TRY(family_edit(unit, "payload_swap", ATS_LAWS_PAYLOAD_SWAP, "payload_swap",
                            ATS_MODE_NONE, target, NULL, 0, err));
    } else {
        ATS_TRY(ats_verify_not_applicable(unit, "overlay", "the sample has no span to compete with",
                                          err));
        ATS_TRY(ats_verify_not_applicable(
            unit, "payload_swap", "the sample has no span whose values could be swapped", err));
    }
    ATS_TRY(family_edit(unit, "mask", ATS_LAWS_MASK, "mask_window", ATS_MODE_NONE, target, mask, 3,
                        err));
    ATS_TRY(family_edit(unit, "temperature", ATS_LAWS_TEMPERATURE, "temperature", ATS_MODE_NONE,
                        target, tau, 1, err));
out:
    return rc;
}
