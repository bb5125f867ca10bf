#include "engine/fidelity.h"

/* The runs of a perturbed sample: rows inserted, or base rows that follow one another and move
 * alike. Base rows between two runs are missing. */
typedef struct builder {
    const ats_sample *base, *perturbed;
    ats_segment *segments; /* NULL: count alone */
    int64_t n, next, rows; /* segments, next base row, side rows so far */
} builder;

static void add(builder *b, ats_segment segment)
{
    if (b->segments != NULL) b->segments[b->n] = segment;
    b->n++;
}

static void hide_until(builder *b, int64_t row)
{
    if (row > b->next) add(b, (ats_segment){.kind = ATS_SEG_HIDE, .start = b->next, .stop = row});
}

static int64_t delta_of(const builder *b, int64_t i)
{
    return b->perturbed->position[i] - b->base->position[b->perturbed->base_index[i]];
}

static ats_code walk(builder *b, ats_err *err)
{
    const int64_t *index = b->perturbed->base_index, n = b->perturbed->n_keys;
    for (int64_t i = 0, j; i < n; i = j) {
        j = i + 1;
        if (index[i] < 0) {
            while (j < n && index[j] < 0) j++;
            add(b, (ats_segment){.kind = ATS_SEG_ROWS, .stop = j - i, .row = b->rows});
            b->rows += j - i;
            continue;
        }
        if (index[i] < b->next)
            return ats_fail(
                err, ATS_E_UNSUPPORTED,
                "sample %s: row %lld is row %lld of %s, but an earlier row was already "
                "row %lld; fidelity knows inserted and removed rows, not reordered ones",
                b->perturbed->id, (long long)i, (long long)index[i], b->base->id,
                (long long)b->next - 1);
        while (j < n && index[j] == index[j - 1] + 1 && delta_of(b, j) == delta_of(b, i)) j++;
        hide_until(b, index[i]);
        b->next = index[j - 1] + 1;
        add(b,
            (ats_segment){
                .kind = ATS_SEG_KEEP, .start = index[i], .stop = b->next, .delta = delta_of(b, i)});
    }
    hide_until(b, b->base->n_keys);
    return ATS_OK;
}

/* Probes of both samples are the same tokens, all moved by one distance. */
static ats_code find_query_delta(const ats_sample *base, const ats_sample *perturbed, int64_t *out,
                                 ats_err *err)
{
    if (base->n_probes != perturbed->n_probes || base->n_probes == 0)
        return ats_fail(err, ATS_E_INPUT,
                        "samples %s and %s have %lld and %lld probes; a pair needs the same ones",
                        base->id, perturbed->id, (long long)base->n_probes,
                        (long long)perturbed->n_probes);
    *out = perturbed->probes[0].position - base->probes[0].position;
    for (int64_t p = 0; p < base->n_probes; p++) {
        const ats_probe *a = &base->probes[p], *b = &perturbed->probes[p];
        const bool apart =
            a->index >= 0 && b->index >= 0 && perturbed->base_index[b->index] != a->index;
        if (apart || b->position - a->position != *out)
            return ats_fail(err, ATS_E_INPUT,
                            "probe %lld of sample %s (position %lld) is not probe %lld of %s "
                            "(position %lld) moved by %lld; rows of a pair are inserted before all "
                            "probes",
                            (long long)p, perturbed->id, (long long)b->position, (long long)p,
                            base->id, (long long)a->position, (long long)*out);
    }
    return ATS_OK;
}

static ats_code side_rows(ats_arena *arena, const ats_sample *perturbed, const ats_layer *layer,
                          const ats_attention *attention, int64_t kv_head, int64_t rows,
                          ats_side *out, ats_err *err)
{
    const int64_t d = layer->d_qk, dv = layer->d_v, first = kv_head * perturbed->n_keys;
    float *k = NULL, *v = NULL;
    int64_t *position = NULL, at = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, rows * d, &k, err));
    ATS_TRY(ATS_NEW(arena, rows * dv, &v, err));
    ATS_TRY(ATS_NEW(arena, rows, &position, err));
    for (int64_t i = 0; i < perturbed->n_keys; i++) {
        if (perturbed->base_index[i] >= 0) continue;
        ats_widen(attention->k_dtype, attention->k, (first + i) * d, d, k + at * d);
        ats_widen(attention->v_dtype, attention->v, (first + i) * dv, dv, v + at * dv);
        position[at++] = perturbed->position[i];
    }
    *out = (ats_side){.count = rows, .k = k, .v = v, .position = position};
out:
    return rc;
}

ats_code ats_fidelity_edit(ats_arena *arena, const ats_sample *base, const ats_sample *perturbed,
                           const ats_layer *layer, const ats_attention *attention, int64_t kv_head,
                           ats_edit *out, ats_err *err)
{
    builder count = {.base = base, .perturbed = perturbed};
    builder build = count;
    ats_edit edit = {.temperature = 1};
    ats_code rc;
    ATS_TRY(find_query_delta(base, perturbed, &edit.query_delta, err));
    ATS_TRY(walk(&count, err));
    ATS_TRY(ATS_NEW(arena, count.n, &build.segments, err));
    ATS_TRY(walk(&build, err));
    ATS_TRY(side_rows(arena, perturbed, layer, attention, kv_head, build.rows, &edit.side, err));
    edit.n_segments = build.n;
    edit.segments = build.segments;
    *out = edit;
out:
    return rc;
}
