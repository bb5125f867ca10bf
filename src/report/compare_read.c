#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "metrics/metric.h"
#include "report/compare_private.h"

/* Bytes of one side that are in memory at once, about. */
static const int64_t BLOCK = (int64_t)64 << 20;

/* A variable at one place of its last axis, and who wants its numbers. */
typedef struct column {
    const char *name;
    int64_t x;                   /* span or part, 0 without such an axis */
    bool base, logarithm, inner; /* base: a row a sample. logarithm: probes are averaged in log.
                                    inner: the result stays in log */
    int64_t n_gates;
    const int64_t *gates; /* [n_gates] */
    bool explore;         /* cells, curves and summary rows come from it */
    double *folded[2];    /* [rows, n_layers, n_heads] of one pair; NaN: no pair of numbers */
} column;

typedef struct reading {
    ats_compare_state *s;
    int64_t n_columns;
    column *columns;
    float *block[2]; /* malloc'd */
    int64_t block_floats;
    int64_t cells, width, probes; /* of the variable being read: layers x heads, last axis */
    double *heads, *layers, *cases;
    int64_t *mismatch; /* [rows of a block] cells with a number on one side, of the column */
    int64_t *first;    /* [rows] first such cell */
} reading;

static const char *const part_names[ATS_N_PARTS] = {"removal", "intrusion", "dilution", "reroute",
                                                    "payload"};

static int64_t index_of(const char *const *names, int64_t n, const char *name)
{
    for (int64_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

static ats_code fail_gate(const ats_compare_gate *gate, ats_err *err, const char *what,
                          const char *word)
{
    ats_code rc = ats_fail(err, ATS_E_SUITE, what, word);
    if (gate->file == NULL) return ats_prepend(err, rc, "gate '%s'", gate->name);
    return ats_prepend(err, rc, "%s:%lld:%lld: error: gate '%s'", gate->file, (long long)gate->line,
                       (long long)gate->column, gate->name);
}

/* Where a gate's numbers lie; errors say why they are in neither result. */
static ats_code column_of_gate(const reading *r, const ats_compare_gate *gate, column *out,
                               ats_err *err)
{
    const ats_compare_side *side = &r->s->side[0];
    const bool twin = strncmp(gate->metric, "base_", 5) == 0;
    const ats_metric *metric = ats_metric_find(twin ? gate->metric + 5 : gate->metric);
    column made = {.name = gate->metric, .base = twin};
    if (metric == NULL) return fail_gate(gate, err, "there is no metric %s", gate->metric);
    made.base |= metric->base_only;
    made.logarithm = metric->log_mean;
    if (metric->integer)
        return fail_gate(gate, err,
                         "%s holds indices, which have no difference; take a metric "
                         "that measures",
                         gate->metric);
    for (int i = 0; i < 2; i++)
        if (!ats_result_has(r->s->side[i].file, gate->metric)) {
            ats_code rc = fail_gate(gate, err,
                                    "metric %s is not in the result; add it to "
                                    "metrics.keep and run again",
                                    gate->metric);
            return ats_prepend(err, rc, "%s", r->s->side[i].path);
        }
    if (metric->shape == ATS_SHAPE_SPAN) {
        made.x = gate->span != NULL ? index_of(side->span, side->n_spans, gate->span) : -1;
        if (made.x < 0)
            return fail_gate(gate, err, "no sample of the results has a span '%s'",
                             gate->span != NULL ? gate->span : "");
    } else if (metric->shape == ATS_SHAPE_PART) {
        made.x = gate->part != NULL ? index_of(part_names, ATS_N_PARTS, gate->part) : -1;
        if (made.x < 0)
            return fail_gate(gate, err, "there is no part '%s'",
                             gate->part != NULL ? gate->part : "");
    } else if (metric->shape != ATS_SHAPE_SCALAR) {
        return fail_gate(gate, err, "metric %s is a list, and a gate judges one number",
                         gate->metric);
    }
    *out = made;
    return ATS_OK;
}

static ats_code check_variants(const reading *r, const ats_compare_gate *gate, ats_err *err)
{
    const ats_compare_side *side = &r->s->side[0];
    if (gate->n_variants == 0) return fail_gate(gate, err, "it judges no case%s", "");
    for (int64_t i = 0; i < gate->n_variants; i++)
        if (index_of(side->variant, side->n_variants, gate->variants[i]) < 0)
            return fail_gate(gate, err, "it judges the variant %s, which the results do not hold",
                             gate->variants[i]);
    return ATS_OK;
}

static column *find_column(reading *r, const column *wanted)
{
    for (int64_t i = 0; i < r->n_columns; i++)
        if (strcmp(r->columns[i].name, wanted->name) == 0 && r->columns[i].x == wanted->x &&
            r->columns[i].inner == wanted->inner)
            return &r->columns[i];
    r->columns[r->n_columns] = *wanted;
    return &r->columns[r->n_columns++];
}

static ats_code make_columns(reading *r, ats_err *err)
{
    ats_compare_state *s = r->s;
    const int64_t n_gates = s->options->n_gates;
    const int64_t cells = s->out->n_layers * s->out->n_heads;
    ats_code rc;
    ATS_TRY(ATS_NEW0(s->arena, n_gates + 2, &r->columns, err));
    for (int64_t g = 0; g < n_gates; g++) {
        const ats_compare_gate *gate = &s->options->gates[g];
        column made;
        int64_t *gates = NULL;
        ATS_TRY(column_of_gate(r, gate, &made, err));
        ATS_TRY(check_variants(r, gate, err));
        column *c = find_column(r, &made);
        ATS_TRY(ATS_NEW(s->arena, c->n_gates + 1, &gates, err));
        if (c->n_gates > 0) memcpy(gates, c->gates, (size_t)c->n_gates * sizeof *gates);
        gates[c->n_gates++] = g;
        c->gates = gates;
    }
    if (s->target >= 0) {
        const column shift = {.name = "log_mass_shift", .x = s->target};
        const column mass = {
            .name = "base_mass", .x = s->target, .base = true, .logarithm = true, .inner = true};
        const column *const wanted[] = {&shift, &mass};
        for (int i = 0; i < 2; i++)
            if (ats_result_has(s->side[0].file, wanted[i]->name) &&
                ats_result_has(s->side[1].file, wanted[i]->name))
                find_column(r, wanted[i])->explore = true;
    }
    for (int64_t c = 0; c < r->n_columns; c++)
        for (int i = 0; i < 2; i++)
            ATS_TRY(ATS_NEW(s->arena, (r->columns[c].base ? 1 : s->out->n_variants) * cells,
                            &r->columns[c].folded[i], err));
out:
    return rc;
}

/* Extents of a variable against what the axes say; width and probes of the reading are set. */
static ats_code measure_variable(reading *r, const column *c, ats_err *err)
{
    const bool probes = strcmp(r->s->side[0].detail, "head") != 0;
    int64_t width = 0;
    for (int i = 0; i < 2; i++) {
        const ats_compare_side *side = &r->s->side[i];
        ats_result_variable v = {.values = NULL};
        ats_code rc = ats_result_shape(side->file, c->name, &v, err);
        if (rc != ATS_OK) return rc;
        const int least = probes ? 4 : 3;
        const int64_t rows = c->base ? side->n_samples : side->n_cases;
        r->probes = probes && v.rank > 3 ? v.extent[3] : 1;
        r->width = v.rank > least ? v.extent[least] : 1;
        if (v.rank < least || v.rank > least + 1 || v.extent[0] != rows ||
            v.extent[1] != side->n_layers || v.extent[2] != side->n_heads ||
            (probes && r->probes != side->n_probes) || c->x >= r->width)
            return ats_fail(err, ATS_E_INPUT,
                            "%s: /%s has not the axes that cases, layers, heads%s of the file ask "
                            "for",
                            side->path, c->name, probes ? ", probes" : "");
        if (i == 1 && r->width != width)
            return ats_fail(err, ATS_E_INPUT, "/%s has other extents in %s than in %s", c->name,
                            side->path, r->s->side[0].path);
        width = r->width;
    }
    r->cells = r->s->out->n_layers * r->s->out->n_heads;
    return ATS_OK;
}

/* Both numbers of one cell; counts those on one side only. */
typedef struct fold_job {
    reading *r;
    column *c;
    int64_t first_row; /* of the block, among the pair's rows */
} fold_job;

static ats_code fold_row(void *ctx, int64_t row, int worker, ats_err *err)
{
    (void)worker;
    (void)err;
    const fold_job *job = ctx;
    reading *r = job->r;
    const column *c = job->c;
    int64_t both = 0;
    r->mismatch[row] = 0;
    for (int64_t cell = 0; cell < r->cells; cell++) {
        double sum[2] = {0, 0};
        int64_t n = 0;
        for (int64_t p = 0; p < r->probes; p++) {
            const int64_t at = ((row * r->cells + cell) * r->probes + p) * r->width + c->x;
            double a = (double)r->block[0][at], b = (double)r->block[1][at];
            if (c->logarithm) {
                a = log(a);
                b = log(b);
            }
            if (isfinite(a) && isfinite(b)) {
                sum[0] += a;
                sum[1] += b;
                n++;
            } else if ((isnan(a) && isnan(b)) || a == b) {
                both++;
            } else {
                if (r->mismatch[row]++ == 0) r->first[row] = cell * r->probes + p;
            }
        }
        const int64_t to = (job->first_row + row) * r->cells + cell;
        for (int i = 0; i < 2; i++) {
            const double mean = n > 0 ? sum[i] / (double)n : (double)NAN;
            c->folded[i][to] = c->logarithm && !c->inner ? exp(mean) : mean;
        }
    }
    r->first[row] = r->mismatch[row] > 0 ? r->first[row] : -both - 1;
    return ATS_OK;
}

/* What was found in a block: numbers on one side are findings, equal gaps are counted. */
static ats_code note_rows(reading *r, const column *c, const ats_compare_pair *pair, int64_t first,
                          int64_t rows)
{
    ats_compare_state *s = r->s;
    const ats_compare_side *side = &s->side[0];
    for (int64_t row = 0; row < rows; row++) {
        const int64_t v = first + row;
        if (!c->base && !pair->ran[v]) continue;
        if (r->mismatch[row] == 0) {
            s->out->n_undefined_both += -r->first[row] - 1;
            continue;
        }
        const int64_t at = r->first[row], cell = at / r->probes;
        const int64_t place = ((row * r->cells + cell) * r->probes + at % r->probes) * r->width;
        char text[256];
        snprintf(text, sizeof text,
                 "%s: %lld cells have a number on one side only or differ by infinity, first layer "
                 "%lld head %lld probe %lld: baseline %g, candidate %g",
                 c->name, (long long)r->mismatch[row],
                 (long long)s->out->layers[cell / s->out->n_heads],
                 (long long)s->out->heads[cell % s->out->n_heads], (long long)(at % r->probes),
                 (double)r->block[0][place + c->x], (double)r->block[1][place + c->x]);
        const ats_code rc =
            ats_compare_find(s, ATS_FINDING_UNDEFINED, side->sample_id[pair->base],
                             c->base ? NULL : side->variant[v], r->mismatch[row], text);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

static void take_gate(reading *r, const column *c, int64_t g, int64_t pair)
{
    ats_compare_state *s = r->s;
    const ats_compare_gate *gate = &s->options->gates[g];
    const ats_compare_side *side = &s->side[0];
    const int64_t n_layers = s->out->n_layers, n_heads = s->out->n_heads;
    for (int i = 0; i < 2; i++) {
        int64_t n = 0;
        for (int64_t v = 0; v < s->out->n_variants; v++) {
            if (!s->pairs[pair].ran[v] ||
                index_of(gate->variants, gate->n_variants, side->variant[v]) < 0)
                continue;
            const double *folded = c->folded[i] + (c->base ? 0 : v * r->cells);
            for (int64_t l = 0; l < n_layers; l++) {
                memcpy(r->heads, folded + l * n_heads, (size_t)n_heads * sizeof *r->heads);
                r->layers[l] = ats_reduce(gate->reduce, r->heads, n_heads);
            }
            r->cases[n++] = ats_reduce(gate->reduce, r->layers, n_layers);
        }
        if (i == 0) s->gate_cases[g] += n;
        s->gate[i][g * s->n_pairs + pair] = ats_reduce(gate->reduce, r->cases, n);
    }
}

/* Adds one row's cells to a `what`; variant -1: the base route. */
static void take_cells(reading *r, const column *c, int64_t pair, int64_t w, int64_t variant)
{
    ats_compare_state *s = r->s;
    const int64_t row = variant < 0 ? 0 : variant * r->cells;
    const int64_t case_index =
        s->pairs[pair].candidate * s->out->n_variants + (variant < 0 ? 0 : variant);
    double sum[2] = {0, 0};
    int64_t n = 0;
    for (int64_t cell = 0; cell < r->cells; cell++) {
        const double a = c->folded[0][row + cell], b = c->folded[1][row + cell];
        if (isnan(a)) continue;
        const int64_t place = w * r->cells + cell, to = place * s->n_pairs + pair;
        sum[0] += a;
        sum[1] += b;
        n++;
        s->cell[0][to] += a;
        s->cell[1][to] += b;
        s->cell_n[to]++;
        if (b - a >= s->worst[place]) continue;
        s->worst[place] = b - a;
        s->worst_case[place] = case_index;
    }
    if (variant < 0) return;
    for (int i = 0; i < 2; i++)
        s->variant_mean[i][variant * s->n_pairs + pair] = n > 0 ? sum[i] / (double)n : (double)NAN;
}

static void take(reading *r, const column *c, int64_t pair)
{
    ats_compare_state *s = r->s;
    for (int64_t i = 0; i < c->n_gates; i++) take_gate(r, c, c->gates[i], pair);
    if (!c->explore) return;
    if (c->base) take_cells(r, c, pair, 0, -1);
    for (int64_t v = 0; !c->base && v < s->out->n_variants; v++)
        if (s->treatment[v] && s->pairs[pair].ran[v]) take_cells(r, c, pair, s->variant_what[v], v);
}

static ats_code reserve(reading *r, int64_t floats, ats_err *err)
{
    if (floats <= r->block_floats) return ATS_OK;
    for (int i = 0; i < 2; i++) {
        free(r->block[i]);
        r->block[i] = malloc((size_t)floats * sizeof(float));
        if (r->block[i] == NULL)
            return ats_fail(err, ATS_E_MEMORY, "out of memory for a block of %lld numbers",
                            (long long)floats);
    }
    r->block_floats = floats;
    return ATS_OK;
}

/* One pair's rows of a variable, for every column of that name. */
static ats_code read_pair(reading *r, int64_t first_column, int64_t pair, ats_err *err)
{
    ats_compare_state *s = r->s;
    const column *lead = &r->columns[first_column];
    const ats_compare_pair *p = &s->pairs[pair];
    const int64_t rows = lead->base ? 1 : s->out->n_variants;
    const int64_t row_floats = r->cells * r->probes * r->width;
    int64_t step = BLOCK / (row_floats * (int64_t)sizeof(float));
    if (step < 1) step = 1;
    if (step > rows) step = rows;
    ats_code rc = reserve(r, step * row_floats, err);
    for (int64_t v = 0; v < rows && rc == ATS_OK; v += step) {
        const int64_t n = rows - v < step ? rows - v : step;
        const int64_t a = lead->base ? p->base : p->base * rows + v;
        const int64_t b = lead->base ? p->candidate : p->candidate * rows + v;
        ATS_TRY(ats_result_read_rows(s->side[0].file, lead->name, a, n, r->block[0], err));
        ATS_TRY(ats_result_read_rows(s->side[1].file, lead->name, b, n, r->block[1], err));
        for (int64_t c = first_column; c < r->n_columns; c++) {
            if (strcmp(r->columns[c].name, lead->name) != 0) continue;
            fold_job job = {r, &r->columns[c], v};
            ATS_TRY(ats_parallel_for(n, fold_row, &job, err));
            ATS_TRY(note_rows(r, &r->columns[c], p, v, n));
        }
    }
out:
    return rc;
}

static ats_code read_variable(reading *r, int64_t first_column, ats_err *err)
{
    ats_compare_state *s = r->s;
    const column *lead = &r->columns[first_column];
    ats_code rc;
    for (int64_t c = 0; c < first_column; c++)
        if (strcmp(r->columns[c].name, lead->name) == 0) return ATS_OK;
    ATS_TRY(measure_variable(r, lead, err));
    for (int64_t pair = 0; pair < s->n_pairs; pair++) {
        ATS_TRY(read_pair(r, first_column, pair, err));
        for (int64_t c = first_column; c < r->n_columns; c++)
            if (strcmp(r->columns[c].name, lead->name) == 0) take(r, &r->columns[c], pair);
    }
out:
    return rc;
}

static ats_code allocate(reading *r, ats_err *err)
{
    ats_compare_state *s = r->s;
    const int64_t cells = s->out->n_what * s->out->n_layers * s->out->n_heads;
    const int64_t n_gates = s->options->n_gates, n_variants = s->out->n_variants;
    ats_code rc;
    ATS_TRY(ATS_NEW(s->arena, s->out->n_heads, &r->heads, err));
    ATS_TRY(ATS_NEW(s->arena, s->out->n_layers, &r->layers, err));
    ATS_TRY(ATS_NEW(s->arena, n_variants, &r->cases, err));
    ATS_TRY(ATS_NEW(s->arena, n_variants, &r->mismatch, err));
    ATS_TRY(ATS_NEW(s->arena, n_variants, &r->first, err));
    ATS_TRY(ATS_NEW0(s->arena, n_gates, &s->gate_cases, err));
    ATS_TRY(ATS_NEW0(s->arena, cells * s->n_pairs, &s->cell_n, err));
    ATS_TRY(ATS_NEW(s->arena, cells, &s->worst, err));
    ATS_TRY(ATS_NEW(s->arena, cells, &s->worst_case, err));
    for (int64_t i = 0; i < cells; i++) {
        s->worst[i] = INFINITY;
        s->worst_case[i] = -1;
    }
    for (int i = 0; i < 2; i++) {
        ATS_TRY(ATS_NEW(s->arena, n_gates * s->n_pairs, &s->gate[i], err));
        ATS_TRY(ATS_NEW0(s->arena, cells * s->n_pairs, &s->cell[i], err));
        ATS_TRY(ATS_NEW(s->arena, n_variants * s->n_pairs, &s->variant_mean[i], err));
        for (int64_t k = 0; k < n_variants * s->n_pairs; k++) s->variant_mean[i][k] = NAN;
    }
out:
    return rc;
}

ats_code ats_compare_read(ats_compare_state *s, ats_err *err)
{
    reading r = {.s = s};
    ats_code rc;
    ATS_TRY(allocate(&r, err));
    ATS_TRY(make_columns(&r, err));
    for (int64_t c = 0; c < r.n_columns; c++) ATS_TRY(read_variable(&r, c, err));
    const int64_t n = s->out->n_what * s->out->n_layers * s->out->n_heads * s->n_pairs;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            s->cell[k][i] = s->cell_n[i] > 0 ? s->cell[k][i] / s->cell_n[i] : (double)NAN;
out:
    free(r.block[0]);
    free(r.block[1]);
    return rc;
}
