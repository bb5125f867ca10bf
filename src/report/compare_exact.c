#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/metric.h"
#include "report/compare_private.h"

/* The largest difference of one variable so far. */
typedef struct extreme {
    ats_compare_difference difference;
    int64_t row, cell; /* of the candidate; element within the row */
} extreme;

/* |b - a| / max(1, |a|); 0: equal, infinity: a number against none, or infinities that differ. */
static double size_of(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b))) return 0;
    const double d = fabs(b - a);
    return isfinite(d) ? d / fmax(1, fabs(a)) : (double)INFINITY;
}

static void look(extreme *e, double a, double b, double noise, int64_t row, int64_t cell)
{
    const double size = size_of(a, b);
    if (!(size > noise)) return;
    e->difference.count++;
    if (e->difference.count > 1 && !(size > e->difference.size)) return;
    e->difference.base = a;
    e->difference.candidate = b;
    e->difference.size = size;
    e->row = row;
    e->cell = cell;
}

static ats_code place_text(const ats_compare_state *s, const ats_result_variable *shape, extreme *e,
                           ats_err *err)
{
    ats_text text = {.arena = s->arena, .err = err};
    int64_t cell = e->cell, index[6] = {e->row};
    for (int i = shape->rank - 1; i > 0; i--) {
        index[i] = cell % shape->extent[i];
        cell /= shape->extent[i];
    }
    for (int i = 0; i < shape->rank; i++) {
        ats_text_add(&text, "%s%s ", i > 0 ? ", " : "", shape->axis[i]);
        const bool span = strcmp(shape->axis[i], "span") == 0;
        if (i == 0 && strcmp(shape->axis[i], "sample") == 0)
            ats_text_add(&text, "%s", s->side[1].sample_id[index[i]]);
        else if (span && index[i] < s->side[1].n_spans)
            ats_text_add(&text, "%s", s->side[1].span[index[i]]);
        else
            ats_text_add(&text, "%lld",
                         (long long)(i == 1   ? s->out->layers[index[i]]
                                     : i == 2 ? s->out->heads[index[i]]
                                              : index[i]));
    }
    return ats_text_done(&text, &e->difference.place);
}

static ats_code fail_shape(const ats_compare_state *s, const char *name, ats_err *err)
{
    return ats_fail(err, ATS_E_INPUT, "/%s has other extents in %s than in %s", name,
                    s->side[0].path, s->side[1].path);
}

/* A pair's rows of a float variable, some at a time. */
static ats_code look_floats(const ats_compare_state *s, const char *name, bool base, int64_t width,
                            extreme *e, ats_err *err)
{
    const int64_t rows = base ? 1 : s->out->n_variants, room = (int64_t)16 << 20;
    int64_t step = room / width > 0 ? room / width : 1;
    if (step > rows) step = rows;
    float *a = malloc((size_t)(step * width) * sizeof *a);
    float *b = malloc((size_t)(step * width) * sizeof *b);
    ats_code rc = ATS_OK;
    if (a == NULL || b == NULL) rc = ats_fail(err, ATS_E_MEMORY, "out of memory for /%s", name);
    for (int64_t i = 0; i < s->n_pairs * rows && rc == ATS_OK; i += step) {
        const ats_compare_pair *pair = &s->pairs[i / rows];
        const int64_t v = i % rows, n = rows - v < step ? rows - v : step;
        ATS_TRY(ats_result_read_rows(s->side[0].file, name, pair->base * rows + v, n, a, err));
        ATS_TRY(ats_result_read_rows(s->side[1].file, name, pair->candidate * rows + v, n, b, err));
        for (int64_t k = 0; k < n * width; k++)
            look(e, (double)a[k], (double)b[k], s->out->noise_floor,
                 pair->candidate * rows + v + k / width, k % width);
        if (v + n == rows) i += n - step; /* the last piece of a pair may be short */
    }
out:
    free(a);
    free(b);
    return rc;
}

/* Whole numbers (indices of keys) differ or do not: there is no floor. */
static ats_code look_integers(const ats_compare_state *s, const char *name, bool base,
                              int64_t width, extreme *e, ats_err *err)
{
    const int64_t rows = base ? 1 : s->out->n_variants;
    ats_result_variable a = {.values = NULL}, b = {.values = NULL};
    ats_code rc;
    ATS_TRY(ats_result_read(s->side[0].file, name, &a, err));
    ATS_TRY(ats_result_read(s->side[1].file, name, &b, err));
    for (int64_t i = 0; i < s->n_pairs; i++)
        for (int64_t k = 0; k < rows * width; k++)
            look(e, a.values[s->pairs[i].base * rows * width + k],
                 b.values[s->pairs[i].candidate * rows * width + k], 0,
                 s->pairs[i].candidate * rows + k / width, k % width);
out:
    free(a.values);
    free(b.values);
    return rc;
}

static ats_code look_variable(const ats_compare_state *s, const ats_metric *metric, bool base,
                              extreme *e, ats_err *err)
{
    const char *name = NULL;
    ats_result_variable shape = {.values = NULL}, other = {.values = NULL};
    ats_code rc;
    ATS_TRY(ats_arena_printf(s->arena, &name, err, "%s%s",
                             base && !metric->base_only ? "base_" : "", metric->name));
    e->difference.variable = name;
    const bool there = ats_result_has(s->side[0].file, name);
    if (there != ats_result_has(s->side[1].file, name)) return fail_shape(s, name, err);
    if (!there) goto out;
    ATS_TRY(ats_result_shape(s->side[0].file, name, &shape, err));
    ATS_TRY(ats_result_shape(s->side[1].file, name, &other, err));
    int64_t width = 1;
    for (int i = 1; i < shape.rank; i++) {
        if (i >= other.rank || shape.extent[i] != other.extent[i]) return fail_shape(s, name, err);
        width *= shape.extent[i];
    }
    for (int i = 0; i < 2; i++) {
        const ats_compare_side *side = &s->side[i];
        const int64_t rows = i == 0 ? shape.extent[0] : other.extent[0];
        if (shape.rank < 3 || shape.rank != other.rank || shape.extent[1] != side->n_layers ||
            shape.extent[2] != side->n_heads || rows != (base ? side->n_samples : side->n_cases))
            return fail_shape(s, name, err);
    }
    ATS_TRY(metric->integer ? look_integers(s, name, base, width, e, err)
                            : look_floats(s, name, base, width, e, err));
    if (e->difference.count > 0) rc = place_text(s, &shape, e, err);
out:
    return rc;
}

static int by_size(const void *a, const void *b)
{
    const double x = ((const ats_compare_difference *)a)->size;
    const double y = ((const ats_compare_difference *)b)->size;
    return (x < y) - (x > y);
}

ats_code ats_compare_exact(ats_compare_state *s, ats_err *err)
{
    int64_t n_metrics = 0;
    const ats_metric *const *metrics = ats_metrics(&n_metrics);
    ats_compare_difference *list = NULL;
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(s->arena, 2 * n_metrics, &list, err));
    for (int64_t m = 0; m < n_metrics; m++)
        for (int base = metrics[m]->base_only; base < 2; base++) {
            extreme e = {.row = 0};
            if (base != 0 && !metrics[m]->has_base && !metrics[m]->base_only) continue;
            ATS_TRY(look_variable(s, metrics[m], base != 0, &e, err));
            if (e.difference.count > 0) list[n++] = e.difference;
        }
    qsort(list, (size_t)n, sizeof *list, by_size);
    s->out->differences = list;
    s->out->n_differences = n;
out:
    return rc;
}
