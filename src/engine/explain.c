#include "engine/explain.h"

#include <math.h>

#include "engine/explain_private.h"
#include "perturb/script.h"

enum { SCRIPT_LINES = 24 };

/* Tensors of the sample and of its donor. */
typedef struct loaded {
    ats_attention own, donor;
    ats_donor donors[2];
    int64_t count;
} loaded;

static ats_code load(const ats_explain_case *found, loaded *out, ats_err *err)
{
    const ats_selection *selection = &found->plan->selection;
    const ats_chosen *chosen = &selection->samples[found->sample];
    const ats_capture *capture = found->plan->captures[0];
    const int64_t layer = selection->layers[found->layer];
    ats_code rc;
    ATS_TRY(ats_attention_load(capture, chosen->index, layer, &out->own, err));
    out->donors[0] = (ats_donor){.sample = chosen->sample, .attention = &out->own};
    out->count = 1;
    if (chosen->donor < 0) goto out;
    ATS_TRY(ats_attention_load(capture, chosen->donor, layer, &out->donor, err));
    out->donors[1] =
        (ats_donor){.sample = &capture->samples[chosen->donor], .attention = &out->donor};
    out->count = 2;
out:
    return rc;
}

/* The chosen heads that share the explained head's key head, and its place among them. */
static ats_code use_group(const ats_explain_case *found, ats_explanation *out, ats_build *ctx,
                          int64_t *place, ats_err *err)
{
    ats_group *groups = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ats_select_groups(&out->arena, &found->plan->selection, found->layer, &groups, &count,
                              err));
    for (int64_t g = 0; g < count; g++)
        for (int64_t h = 0; h < groups[g].n_heads; h++)
            if (groups[g].heads[h] == out->head) {
                ctx->kv_head = groups[g].kv_head;
                ctx->n_heads = groups[g].n_heads;
                ctx->heads = groups[g].heads;
                *place = h;
                return ATS_OK;
            }
    rc = ats_fail(err, ATS_E_INPUT, "head %lld was not chosen by the suite in layer %lld",
                  (long long)out->head, (long long)out->layer);
out:
    return rc;
}

static ats_code build(ats_explain_cell *cell, const loaded *tensors, const char *case_id,
                      ats_err *err)
{
    const ats_explain_case *found = cell->found;
    ats_explanation *out = cell->out;
    ats_build ctx = ats_plan_build(found->plan, found->sample, found->layer, found->variant,
                                   tensors->donors, tensors->count, &out->arena);
    int64_t place = 0;
    ats_code rc;
    ATS_TRY(use_group(found, out, &ctx, &place, err));
    ATS_TRY(ats_perturb_build(&ctx, &cell->built, err));
    /* Queries of the whole group were made, as in the run; this problem has one head of them. */
    if (cell->built.edit.q != NULL) cell->built.edit.q += place * ctx.n_probes * cell->layer->d_qk;
    if (cell->built.skipped)
        rc = ats_fail(err, ATS_E_INPUT,
                      "case %s was skipped in layer %lld, so there is nothing to explain: %s",
                      case_id, (long long)out->layer, cell->built.reason);
    else
        rc = ats_edit_print(&out->arena, &cell->built.edit, SCRIPT_LINES, &out->script, err);
out:
    return rc;
}

static ats_code make_problem(ats_explain_cell *cell, const ats_attention *attention, ats_err *err)
{
    const ats_plan *plan = cell->found->plan;
    const ats_chosen *chosen = &plan->selection.samples[cell->found->sample];
    const int64_t group = cell->layer->n_q_heads / cell->layer->n_kv_heads;
    int64_t *head = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(&cell->out->arena, 1, &head, err));
    *head = cell->out->head;
    const ats_pick pick = {
        .n_heads = 1, .heads = head, .n_probes = chosen->n_probes, .probes = chosen->probes};
    ATS_TRY(ats_problem_make(&cell->out->arena, cell->layer, cell->sample, attention, *head / group,
                             &pick, &plan->axis, plan->suite->temperature,
                             plan->suite->top_k > 0 ? plan->suite->top_k : 1, &cell->problem, err));
    cell->row = cell->found->result_probe;
out:
    return rc;
}

/* Texts are copied: the plan and the capture they come from are closed before the report is read.
 */
static ats_code copy_names(const ats_explain_case *found, ats_explanation *out, ats_err *err)
{
    const ats_variant *variant = &found->suite->variants[found->variant];
    const ats_perturbation *perturbation = &found->suite->perturbations[variant->perturbation];
    const ats_capture *capture = found->plan->captures[0];
    const struct {
        const char *text, **copy;
    } names[] = {
        {found->suite->name, &out->suite},
        {capture->path, &out->capture},
        {capture->model_id != NULL ? capture->model_id : "", &out->model},
        {found->plan->selection.samples[found->sample].sample->id, &out->sample},
        {variant->id, &out->variant},
        {perturbation->family->kind, &out->kind},
        {variant->arm == ATS_ARM_CONTROL ? "control" : "treatment", &out->arm},
        {variant->mode == ATS_MODE_NONE ? "" : ats_mode_name(variant->mode), &out->mode},
    };
    ats_code rc = ATS_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ATS_TRY(ats_arena_strdup(&out->arena, names[i].text, names[i].copy, err));
out:
    return rc;
}

static ats_code copy_keys(ats_explanation *out, ats_explain_key *keys, int64_t count, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < count; i++) {
        ATS_TRY(ats_arena_strdup(&out->arena, keys[i].text, &keys[i].text, err));
        ATS_TRY(ats_arena_strdup(&out->arena, keys[i].span, &keys[i].span, err));
        ATS_TRY(ats_arena_strdup(&out->arena, keys[i].donor, &keys[i].donor, err));
    }
out:
    return rc;
}

static void copy_contract(const ats_explain_cell *cell, ats_explanation *out)
{
    const ats_contract *contract = &cell->problem.contract;
    const ats_edit *edit = &cell->built.edit;
    const ats_probe *probe = &cell->sample->probes[cell->found->probe];
    out->scale = edit->scale > 0 ? edit->scale : contract->scale;
    out->softcap = contract->softcap;
    out->temperature = contract->temperature * (edit->temperature > 0 ? edit->temperature : 1);
    out->window = contract->window;
    out->chunk = contract->chunk;
    out->sink = cell->problem.sink != NULL ? (double)cell->problem.sink[cell->row] : (double)NAN;
    out->query_delta = edit->query_delta;
    out->dose = cell->built.dose;
    out->case_index = cell->found->result_case;
    out->probe = cell->found->result_probe;
    out->probe_index = cell->found->probe;
    out->probe_position = probe->position;
}

static ats_code explain(const ats_explain_options *options, const ats_explain_case *found,
                        ats_explanation *out, ats_err *err)
{
    const ats_plan *plan = found->plan;
    loaded tensors = {.count = 0};
    ats_explain_cell cell = {.found = found,
                             .layer = ats_plan_layer(plan, found->layer),
                             .sample = plan->selection.samples[found->sample].sample,
                             .out = out};
    ats_code rc;
    out->layer = options->layer;
    out->head = options->head;
    ATS_TRY(load(found, &tensors, err));
    ATS_TRY(build(&cell, &tensors, options->case_id, err));
    ATS_TRY(make_problem(&cell, &tensors.own, err));
    ATS_TRY(copy_names(found, out, err));
    copy_contract(&cell, out);
    out->edit = cell.built.edit;
    if (out->edit.q != NULL) out->edit.q += cell.row * cell.layer->d_qk;
    out->d_qk = cell.layer->d_qk;
    out->d_v = cell.layer->d_v;
    ATS_TRY(ats_explain_routes(&cell, options->top > 0 ? options->top : 8, err));
    ATS_TRY(ats_explain_numbers(&cell, err));
    ATS_TRY(copy_keys(out, out->top, out->n_top, err));
    ATS_TRY(copy_keys(out, out->inserted, out->n_inserted, err));
out:
    ats_attention_fini(&tensors.own);
    ats_attention_fini(&tensors.donor);
    return rc;
}

ats_code ats_explain_run(const ats_explain_options *options, ats_explanation *out, ats_err *err)
{
    ats_explain_case found = {.file = NULL};
    ats_explanation made = {.target = -1};
    ats_code rc;
    ATS_TRY(ats_explain_find(options, &found, err));
    ATS_TRY(explain(options, &found, &made, err));
    *out = made;
    made = (ats_explanation){.target = -1};
out:
    ats_explain_fini(&made);
    ats_explain_case_fini(&found);
    return rc;
}

void ats_explain_fini(ats_explanation *explanation)
{
    ats_arena_fini(&explanation->arena);
    *explanation = (ats_explanation){.target = -1};
}
