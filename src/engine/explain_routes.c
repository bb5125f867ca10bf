#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/explain_private.h"
#include "kernels/reference.h"

/* One route, key by key of its own sequence. */
typedef struct listing {
    int64_t length;
    int64_t *key, *position; /* [length] base index or -2 - side row */
    double *logit, *weight;  /* [length] */
    double lse;
} listing;

static ats_code list_route(ats_explain_cell *cell, const ats_edit *edit, listing *out, ats_err *err)
{
    ats_arena *arena = &cell->out->arena;
    listing made = {.length = ats_reference_length(&cell->problem, edit)};
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, made.length, &made.key, err));
    ATS_TRY(ATS_NEW(arena, made.length, &made.position, err));
    ATS_TRY(ATS_NEW(arena, made.length, &made.logit, err));
    ATS_TRY(ATS_NEW(arena, made.length, &made.weight, err));
    ATS_TRY(ats_reference_row(&cell->problem, edit, cell->row, made.key, made.position, made.logit,
                              made.weight, &made.lse, err));
    *out = made;
out:
    return rc;
}

static bool in_region(const ats_region *region, int64_t key)
{
    for (int64_t r = 0; r < region->n_ranges; r++)
        if (key >= region->ranges[r].start && key < region->ranges[r].stop) return true;
    return false;
}

/* Best key, log-sum-exp and mass over a region (NULL: the inserted rows). */
static ats_explain_route sum_route(const listing *route, const ats_region *region)
{
    ats_explain_route sum = {.best_key = -1, .best = -HUGE_VAL, .lse = -HUGE_VAL};
    double total = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < route->length; i++) {
            const bool inserted = route->key[i] < 0;
            if (region == NULL ? !inserted : inserted || !in_region(region, route->key[i]))
                continue;
            if (pass == 1 && route->logit[i] > -HUGE_VAL) {
                total += exp(route->logit[i] - sum.best);
                sum.mass += route->weight[i];
            } else if (pass == 0 && route->logit[i] > sum.best) {
                sum.best = route->logit[i];
                sum.best_key = route->key[i];
            }
        }
    if (total > 0) sum.lse = sum.best + log(total);
    return sum;
}

static int64_t rows_of(const ats_region *region)
{
    int64_t rows = 0;
    for (int64_t r = 0; r < region->n_ranges; r++)
        rows += region->ranges[r].stop - region->ranges[r].start;
    return rows;
}

/* The axis's spans that hold rows here, and the inserted rows. */
static ats_code fill_spans(ats_explain_cell *cell, const listing *base, const listing *variant,
                           ats_err *err)
{
    ats_explanation *out = cell->out;
    const ats_span_axis *axis = &cell->found->plan->axis;
    ats_code rc = ATS_NEW0(&out->arena, axis->count + 1, &out->spans, err);
    if (rc != ATS_OK) return rc;
    out->target = -1;
    for (int64_t s = 0; s <= axis->count; s++) {
        const ats_region *region = s < axis->count ? &cell->problem.regions[s] : NULL;
        ats_explain_span span = {.rows = region != NULL ? rows_of(region) : 0};
        ATS_TRY(ats_arena_strdup(&out->arena, region != NULL ? axis->names[s] : "inserted",
                                 &span.name, err));
        if (region != NULL && span.rows == 0) continue;
        if (region == NULL && cell->built.edit.side.count == 0) continue;
        if (region != NULL) span.base = sum_route(base, region);
        span.variant = sum_route(variant, region);
        span.log_mass_shift = log(span.variant.mass) - log(span.base.mass);
        span.own_logit_shift = span.variant.lse - span.base.lse;
        if (s == cell->found->plan->target_span) out->target = out->n_spans;
        out->spans[out->n_spans++] = span;
    }
out:
    return rc;
}

/* Name of the first annotated span a base key lies in. */
static const char *span_of(const ats_sample *sample, int64_t key)
{
    for (int64_t s = 0; s < sample->n_spans; s++)
        if (key >= sample->spans[s].start && key < sample->spans[s].stop)
            return sample->spans[s].name;
    return "";
}

static void name_inserted(const ats_explain_cell *cell, ats_explain_key *key)
{
    const ats_realised *realised = &cell->built.realised;
    const int64_t row = -2 - key->key;
    key->span = "inserted";
    if (row >= realised->rows || realised->donor_row == NULL || realised->donor_row[row] < 0)
        return;
    key->donor_row = realised->donor_row[row];
    const ats_capture *capture = cell->found->plan->captures[0];
    const int64_t donor = realised->donor_sample != NULL ? realised->donor_sample[row] : -1;
    if (donor < 0 || donor >= capture->n_samples) return;
    const ats_sample *sample = &capture->samples[donor];
    key->donor = sample->id;
    if (sample->token_text != NULL && key->donor_row < sample->n_keys)
        key->text = sample->token_text[key->donor_row];
}

static ats_explain_key describe_key(const ats_explain_cell *cell, const listing *base,
                                    const listing *variant, int64_t at)
{
    const int64_t key = variant->key[at];
    ats_explain_key made = {.key = key,
                            .position = variant->position[at],
                            .text = "",
                            .span = "",
                            .donor = "",
                            .donor_row = -1,
                            .logit_base = NAN,
                            .weight_base = NAN,
                            .logit = variant->logit[at],
                            .weight = variant->weight[at]};
    if (key < 0) {
        name_inserted(cell, &made);
        return made;
    }
    made.span = span_of(cell->sample, key);
    if (cell->sample->token_text != NULL) made.text = cell->sample->token_text[key];
    made.logit_base = base->logit[key]; /* the base lists its keys in order */
    made.weight_base = base->weight[key];
    return made;
}

static double larger_weight(const ats_explain_key *key)
{
    return isnan(key->weight_base) ? key->weight : fmax(key->weight, key->weight_base);
}

/* Heaviest first, earlier first among equals: keeps the best `wanted` by insertion. */
static void keep_best(ats_explain_key *best, int64_t *count, int64_t wanted, ats_explain_key key)
{
    int64_t at = *count;
    while (at > 0 && larger_weight(&best[at - 1]) < larger_weight(&key)) at--;
    if (at == wanted) return;
    const int64_t moved = *count < wanted ? *count - at : wanted - 1 - at;
    memmove(best + at + 1, best + at, (size_t)moved * sizeof *best);
    best[at] = key;
    if (*count < wanted) ++*count;
}

static ats_code fill_keys(ats_explain_cell *cell, int64_t top, const listing *base,
                          const listing *variant, ats_err *err)
{
    ats_explanation *out = cell->out;
    ats_code rc;
    ATS_TRY(ATS_NEW(&out->arena, top, &out->top, err));
    ATS_TRY(ATS_NEW(&out->arena, cell->built.edit.side.count + 1, &out->inserted, err));
    for (int64_t i = 0; i < variant->length; i++) {
        const ats_explain_key key = describe_key(cell, base, variant, i);
        if (key.key < 0) out->inserted[out->n_inserted++] = key;
        if (larger_weight(&key) > 0) keep_best(out->top, &out->n_top, top, key);
    }
out:
    return rc;
}

static int64_t count_legal(const listing *route)
{
    int64_t legal = 0;
    for (int64_t i = 0; i < route->length; i++) legal += route->logit[i] > -HUGE_VAL;
    return legal;
}

ats_code ats_explain_routes(ats_explain_cell *cell, int64_t top, ats_err *err)
{
    ats_explanation *out = cell->out;
    listing base = {.length = 0}, variant = {.length = 0};
    ats_code rc;
    ATS_TRY(list_route(cell, NULL, &base, err));
    ATS_TRY(list_route(cell, &cell->built.edit, &variant, err));
    out->n_keys = base.length;
    out->length = variant.length;
    out->lse_base = base.lse;
    out->lse = variant.lse;
    out->legal_base = count_legal(&base);
    out->legal = count_legal(&variant);
    ATS_TRY(fill_spans(cell, &base, &variant, err));
    ATS_TRY(fill_keys(cell, top, &base, &variant, err));
out:
    return rc;
}
