#include "engine/outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ats_code ats_outcome_make(const ats_plan *plan, ats_outcome *out, ats_err *err)
{
    ats_outcome made = {.n_cases = plan->n_cases};
    ats_case *cases = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(&made.arena, plan->n_cases, &cases, err));
    for (int64_t c = 0; c < plan->n_cases; c++)
        cases[c] = (ats_case){.status = ATS_CASE_SKIPPED, .message = ""};
    made.cases = cases;
    ATS_TRY(ats_tables_make(&made.arena, plan, &made.tables, err));
    *out = made;
    return ATS_OK;
out:
    ats_arena_fini(&made.arena);
    return rc;
}

typedef struct taker {
    const ats_plan *plan;
    ats_result_file *file;
    int64_t first, count, n; /* samples; cases of the file */
    ats_outcome *outcome;
    ats_err *err;
} taker;

static ats_code numbers(const taker *t, const char *name, double **out)
{
    ats_result_variable v = {.values = NULL};
    ats_code rc = ats_result_read(t->file, name, &v, t->err);
    if (rc != ATS_OK) return rc;
    if (v.rank != 1 || v.extent[0] != t->n) {
        free(v.values);
        return ats_fail(t->err, ATS_E_INPUT, "%s has not one number for each of %lld cases", name,
                        (long long)t->n);
    }
    *out = v.values;
    return ATS_OK;
}

enum { STATUS, ROWS, UNDEFINED, DOSE, COSINE, RATIO, LOGIT, N_COLUMNS };
static const char *const columns[N_COLUMNS] = {
    "status",        "rows", "undefined", "dose", "realised_cosine", "realised_norm_ratio",
    "realised_logit"};

static ats_code take_cases(const taker *t)
{
    double *values[N_COLUMNS] = {NULL};
    char **texts = NULL;
    int64_t n = 0;
    ats_code rc;
    ats_case *cases = t->outcome->cases + t->first * t->plan->suite->n_variants;
    for (int i = 0; i < N_COLUMNS; i++) ATS_TRY(numbers(t, columns[i], &values[i]));
    ATS_TRY(ats_result_texts(t->file, "message", &texts, &n, t->err));
    if (n != t->n)
        ATS_TRY(ats_fail(t->err, ATS_E_INPUT, "message has %lld texts, should have %lld",
                         (long long)n, (long long)t->n));
    for (int64_t c = 0; c < t->n; c++) {
        const double status = values[STATUS][c];
        cases[c] = (ats_case){
            .status = status == 0   ? ATS_CASE_OK
                      : status == 1 ? ATS_CASE_SKIPPED
                                    : ATS_CASE_FAILED,
            .rows = (int64_t)values[ROWS][c],
            .undefined = (int64_t)values[UNDEFINED][c],
            .dose = values[DOSE][c],
            .cosine = values[COSINE][c],
            .norm_ratio = values[RATIO][c],
            .logit = values[LOGIT][c],
        };
        cases[c].message = "";
        if (texts[c][0] != '\0')
            ATS_TRY(ats_arena_strdup(&t->outcome->arena, texts[c], &cases[c].message, t->err));
    }
out:
    for (int i = 0; i < N_COLUMNS; i++) free(values[i]);
    ats_result_free_texts(texts, n);
    return rc;
}

/* Rows of a variable with the probes of one cell after another, whatever its detail. */
typedef struct table_shape {
    char name[96];
    int64_t rows, cells, probes, width; /* width: elements of a probe */
    bool integer;
} table_shape;

static ats_code shape_of(const taker *t, const ats_table *table, table_shape *out)
{
    const ats_metric *metric = t->plan->metrics[table->metric];
    const ats_results_shape *shape = &t->plan->shape;
    ats_result_variable v;
    int64_t all = 1;
    snprintf(out->name, sizeof out->name, "%s%s", table->base ? "base_" : "", metric->name);
    ats_code rc = ats_result_shape(t->file, out->name, &v, t->err);
    if (rc != ATS_OK) return rc;
    for (int i = 1; i < v.rank; i++) all *= v.extent[i];
    out->rows = table->base ? t->count : t->n;
    out->cells = shape->n_layers * shape->n_heads;
    out->probes = shape->detail_head ? 1 : shape->n_probes;
    out->width = all / (out->cells * out->probes);
    out->integer = metric->integer;
    if (v.rank >= 3 && v.extent[0] == out->rows && v.extent[1] == shape->n_layers &&
        v.extent[2] == shape->n_heads && out->width >= 1 && table->x < out->width &&
        all == out->cells * out->probes * out->width)
        return ATS_OK;
    return ats_fail(t->err, ATS_E_INPUT, "%s is not shaped as the suite's plan says", out->name);
}

static ats_code take_table(const taker *t, ats_table *table, ats_arena *arena)
{
    enum { BLOCK = 8 << 20 }; /* elements */
    const ats_metric *metric = t->plan->metrics[table->metric];
    table_shape s;
    float *block = NULL;
    ats_code rc = shape_of(t, table, &s);
    if (rc != ATS_OK) return rc;
    const int64_t row = s.cells * s.probes * s.width;
    const int64_t step = row < BLOCK ? BLOCK / row : 1;
    const int64_t start = (table->base ? 1 : t->plan->suite->n_variants) * t->first;
    ATS_TRY(ATS_NEW(arena, row * (step < s.rows ? step : s.rows), &block, t->err));
    for (int64_t first = 0; first < s.rows; first += step) {
        const int64_t count = s.rows - first < step ? s.rows - first : step;
        ATS_TRY(ats_result_read_rows(t->file, s.name, first, count, block, t->err));
        for (int64_t i = 0; i < count * s.cells; i++)
            table->values[(start + first) * s.cells + i] =
                ats_probe_mean(metric, s.integer ? NULL : block,
                               s.integer ? (const int32_t *)(const void *)block : NULL,
                               i * s.probes, s.probes, s.width, table->x);
    }
out:
    return rc;
}

ats_code ats_outcome_take(const ats_plan *plan, ats_result_file *file, int64_t first, int64_t count,
                          ats_outcome *outcome, ats_err *err)
{
    const taker t = {plan, file, first, count, count * plan->suite->n_variants, outcome, err};
    ats_arena arena = {.blocks = NULL};
    ats_code rc = take_cases(&t);
    for (int64_t i = 0; i < outcome->tables.count && rc == ATS_OK; i++) {
        ats_arena_reset(&arena);
        if (outcome->tables.items[i].metric >= 0)
            rc = take_table(&t, &outcome->tables.items[i], &arena);
    }
    ats_arena_fini(&arena);
    return rc;
}

ats_code ats_outcome_settle(const ats_plan *plan, ats_outcome *outcome, ats_err *err)
{
    outcome->n_ok = outcome->n_skipped = outcome->n_failed = outcome->n_undefined = 0;
    for (int64_t c = 0; c < outcome->n_cases; c++) {
        const ats_case *one = &outcome->cases[c];
        outcome->n_ok += one->status == ATS_CASE_OK;
        outcome->n_skipped += one->status == ATS_CASE_SKIPPED;
        outcome->n_failed += one->status == ATS_CASE_FAILED;
        outcome->n_undefined += one->undefined;
    }
    return ats_curves_make(&outcome->arena, plan, outcome, &outcome->curves, err);
}

static int64_t extent_of(ats_result_file *file, const char *axis)
{
    ats_result_variable v;
    ats_err ignored;
    return ats_result_shape(file, axis, &v, &ignored) == ATS_OK && v.rank == 1 ? v.extent[0] : 0;
}

/* Every metric that the file holds, base or not. */
static ats_code metrics_of(ats_arena *arena, ats_result_file *file, ats_plan *plan, ats_err *err)
{
    int64_t n = 0;
    const ats_metric *const *all = ats_metrics(&n);
    ats_code rc = ATS_NEW(arena, n, &plan->metrics, err);
    for (int64_t m = 0; m < n && rc == ATS_OK; m++) {
        const char *base = NULL;
        rc = ats_arena_printf(arena, &base, err, "base_%s", all[m]->name);
        if (rc == ATS_OK && (ats_result_has(file, all[m]->name) || ats_result_has(file, base)))
            plan->metrics[plan->n_metrics++] = all[m];
    }
    return rc;
}

static ats_code words(ats_arena *arena, ats_result_file *file, const char *name,
                      const char *const **out, int64_t *count, ats_err *err)
{
    char **texts = NULL;
    const char **copy = NULL;
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(ats_result_texts(file, name, &texts, &n, err));
    ATS_TRY(ATS_NEW(arena, n, &copy, err));
    for (int64_t i = 0; i < n; i++) ATS_TRY(ats_arena_strdup(arena, texts[i], &copy[i], err));
    *out = copy;
    *count = n;
out:
    ats_result_free_texts(texts, n);
    return rc;
}

ats_code ats_plan_of_result(ats_arena *arena, const ats_suite *suite, ats_result_file *file,
                            int64_t n_samples, ats_plan *out, ats_err *err)
{
    ats_plan plan = {.suite = suite, .n_cases = n_samples * suite->n_variants, .target_span = -1};
    char detail[16] = "";
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(ats_result_attribute(file, "detail", detail, sizeof detail, err));
    ATS_TRY(metrics_of(arena, file, &plan, err));
    ATS_TRY(words(arena, file, "span", &plan.axis.names, &n, err));
    ATS_TRY(words(arena, file, "span_role", &plan.axis.roles, &n, err));
    plan.axis.count = plan.axis.n_named = n - 1; /* without "inserted" */
    plan.selection.n_samples = n_samples;
    plan.shape = (ats_results_shape){.n_cases = plan.n_cases,
                                     .n_samples = n_samples,
                                     .n_layers = extent_of(file, "layer"),
                                     .n_heads = extent_of(file, "head"),
                                     .n_probes = extent_of(file, "probe"),
                                     .n_spans = n,
                                     .detail_head = strcmp(detail, "head") == 0};
    if (extent_of(file, "case") % suite->n_variants != 0 || plan.shape.n_layers < 1)
        ATS_TRY(ats_fail(err, ATS_E_INPUT,
                         "the file holds %lld cases, its suite has %lld variants a sample",
                         (long long)extent_of(file, "case"), (long long)suite->n_variants));
    *out = plan;
out:
    return rc;
}
