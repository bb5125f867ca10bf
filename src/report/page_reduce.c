#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page_private.h"

/* A running mean; infinite and undefined numbers stay out. */
typedef struct mean {
    double sum;
    int64_t n;
} mean;

static void mean_add(mean *m, double value)
{
    if (!isfinite(value)) return;
    m->sum += value;
    m->n++;
}

static double mean_of(const mean *m) { return m->n > 0 ? m->sum / (double)m->n : (double)NAN; }

/* Sums of one swept number: [n][arms], and treatment by head for the weakest one. */
typedef struct curve_sums {
    mean *arm[2];  /* [n] treatment, control */
    mean *by_head; /* [n, cells] treatment */
    mean *change;  /* [n] */
} curve_sums;

typedef struct family_sums {
    mean *cell[2]; /* [cells] treatment, control */
    mean share[ATS_N_PARTS], change;
    curve_sums curve[ATS_PAGE_N_CURVES];
} family_sums;

typedef struct reduction {
    ats_page_reader *reader;
    int64_t cells;   /* layers x heads */
    int64_t *family; /* [n_cases] */
    family_sums *sums;
    mean *overall;                /* [cells] */
    float *shift, *norm, *change; /* one block of cases; NULL: not in the file */
} reduction;

static int64_t find_family(const ats_page_result *x, const char *name)
{
    for (int64_t f = 0; f < x->n_families; f++)
        if (strcmp(x->families[f].name, name) == 0) return f;
    return -1;
}

static bool is_treatment(const ats_page_reader *r, int64_t c)
{
    return strcmp(r->arm[c], "control") != 0;
}

static ats_code group_cases(reduction *d, ats_err *err)
{
    ats_page_reader *r = d->reader;
    ats_page_result *x = r->result;
    ats_code rc;
    ATS_TRY(ATS_NEW(r->arena, x->n_cases, &d->family, err));
    ATS_TRY(ATS_NEW0(r->arena, x->n_cases, &x->families, err));
    for (int64_t c = 0; c < x->n_cases; c++) {
        int64_t f = find_family(x, r->perturbation[c]);
        if (f < 0) {
            f = x->n_families++;
            x->families[f].name = r->perturbation[c];
            x->families[f].kind = r->kind[c];
        }
        d->family[c] = f;
        if (r->status[c] != 0) continue;
        if (is_treatment(r, c))
            x->families[f].n_treatment++;
        else
            x->families[f].n_control++;
    }
out:
    return rc;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Distinct finite values of one swept number in a family, ascending; a single value is no sweep. */
static ats_code find_values(reduction *d, int64_t family, int which, ats_err *err)
{
    const ats_page_reader *r = d->reader;
    const ats_page_result *x = r->result;
    ats_page_curve *curve = &x->families[family].curve[which];
    int64_t n = 0, distinct = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(r->arena, x->n_cases, &curve->x, err));
    for (int64_t c = 0; c < x->n_cases; c++)
        if (d->family[c] == family && isfinite(r->swept[which][c]))
            curve->x[n++] = r->swept[which][c];
    qsort(curve->x, (size_t)n, sizeof *curve->x, compare_doubles);
    for (int64_t i = 0; i < n; i++)
        if (distinct == 0 || curve->x[i] > curve->x[distinct - 1])
            curve->x[distinct++] = curve->x[i];
    if (distinct < 2) goto out;
    curve_sums *sums = &d->sums[family].curve[which];
    ATS_TRY(ATS_NEW0(r->arena, distinct, &sums->arm[0], err));
    ATS_TRY(ATS_NEW0(r->arena, distinct, &sums->arm[1], err));
    ATS_TRY(ATS_NEW0(r->arena, distinct, &sums->change, err));
    ATS_TRY(ATS_NEW0(r->arena, distinct * d->cells, &sums->by_head, err));
    curve->n = distinct;
out:
    return rc;
}

static int64_t place_of(const ats_page_curve *curve, double value)
{
    for (int64_t i = 0; i < curve->n; i++)
        if (curve->x[i] == value) return i;
    return -1;
}

/* Keeps the weakest cell of each perturbation. */
static void keep_worst(reduction *d, int64_t c, int64_t cell, int64_t probe, double shift)
{
    ats_page_cell *worst = &d->reader->result->worst[d->family[c]];
    if (worst->case_index >= 0 && !(shift < worst->shift)) return;
    worst->case_index = c;
    worst->layer = cell / d->reader->result->n_heads;
    worst->head = cell % d->reader->result->n_heads;
    worst->probe = probe;
    worst->shift = shift;
}

static void take_cell(reduction *d, int64_t c, int64_t cell, double shift, double change)
{
    const ats_page_reader *r = d->reader;
    const ats_page_result *x = r->result;
    family_sums *sums = &d->sums[d->family[c]];
    const int arm = is_treatment(r, c) ? 0 : 1;
    mean_add(&sums->cell[arm][cell], shift);
    if (arm == 0 && r->pair[c] >= 0) mean_add(&d->overall[cell], shift);
    if (arm == 0) mean_add(&sums->change, change);
    for (int k = 0; k < ATS_PAGE_N_CURVES; k++) {
        const int64_t i = place_of(&x->families[d->family[c]].curve[k], r->swept[k][c]);
        if (i < 0) continue;
        mean_add(&sums->curve[k].arm[arm][i], shift);
        if (arm == 1) continue;
        mean_add(&sums->curve[k].by_head[i * d->cells + cell], shift);
        mean_add(&sums->curve[k].change[i], change);
    }
}

/* Lengths of the parts as shares of their sum; nothing where the output did not change. */
static void add_shares(const float *norm, mean *share)
{
    double total = 0;
    for (int p = 0; p < ATS_N_PARTS; p++) total += (double)norm[p];
    for (int p = 0; p < ATS_N_PARTS && total > 0 && isfinite(total); p++)
        mean_add(&share[p], (double)norm[p] / total);
}

/* Rows of the layers, heads and probes of log_mass_shift, with `inner` entries in each. */
static ats_code expect_shape(const ats_page_reader *r, const char *name, int64_t inner,
                             ats_err *err)
{
    const ats_page_result *x = r->result;
    ats_result_variable shape = {.values = NULL};
    int64_t rest = 1;
    const ats_code rc = ats_result_shape(r->file, name, &shape, err);
    if (rc != ATS_OK) return rc;
    for (int i = 1; i < shape.rank; i++) rest *= shape.extent[i];
    if (shape.rank > 0 && rest == x->n_layers * x->n_heads * x->n_probes * inner) return ATS_OK;
    return ats_fail(err, ATS_E_INPUT, "%s: %s has another shape than its axes", x->path, name);
}

/* Probe means of one case and cell, as `detail: head` has them. */
static void take_case(reduction *d, int64_t c, int64_t row)
{
    const ats_page_result *x = d->reader->result;
    const int64_t probes = x->n_probes, spans = x->n_spans;
    for (int64_t cell = 0; cell < d->cells; cell++) {
        mean shift = {.n = 0}, change = {.n = 0};
        const int64_t first = (row * d->cells + cell) * probes;
        for (int64_t p = 0; p < probes; p++) {
            if (d->change != NULL) mean_add(&change, (double)d->change[first + p]);
            if (x->target_span < 0) continue;
            const double v = (double)d->shift[(first + p) * spans + x->target_span];
            mean_add(&shift, v);
            if (!is_treatment(d->reader, c)) continue;
            if (isinf(v)) x->families[d->family[c]].n_lost++;
            if (!isnan(v)) keep_worst(d, c, cell, p, v);
        }
        take_cell(d, c, cell, mean_of(&shift), mean_of(&change));
        for (int64_t p = 0; p < probes && d->norm != NULL; p++)
            if (is_treatment(d->reader, c))
                add_shares(d->norm + (first + p) * ATS_N_PARTS, d->sums[d->family[c]].share);
    }
}

static ats_code read_block(reduction *d, const char *name, int64_t first, int64_t count,
                           int64_t inner, float **block, int64_t room, ats_err *err)
{
    const ats_page_result *x = d->reader->result;
    ats_code rc = ATS_OK;
    if (!ats_result_has(d->reader->file, name)) return ATS_OK;
    if (*block == NULL) rc = expect_shape(d->reader, name, inner, err);
    if (rc == ATS_OK && *block == NULL)
        rc = ATS_NEW(d->reader->arena, room * d->cells * x->n_probes * inner, block, err);
    if (rc == ATS_OK) rc = ats_result_read_rows(d->reader->file, name, first, count, *block, err);
    return rc;
}

/* All numbers once, a bounded block of cases at a time. */
static ats_code scan(reduction *d, ats_err *err)
{
    enum { ROOM = 64 << 20 };
    const ats_page_reader *r = d->reader;
    const ats_page_result *x = r->result;
    const int64_t bytes = d->cells * x->n_probes * x->n_spans * (int64_t)sizeof(float);
    const int64_t per_sample = x->n_samples > 0 ? x->n_cases / x->n_samples : x->n_cases;
    int64_t room = per_sample;
    while (room > 1 && room * bytes > ROOM) room = (room + 1) / 2;
    ats_code rc = ATS_OK;
    for (int64_t first = 0; first < x->n_cases && rc == ATS_OK; first += room) {
        const int64_t count = x->n_cases - first < room ? x->n_cases - first : room;
        ATS_TRY(read_block(d, "log_mass_shift", first, count, x->n_spans, &d->shift, room, err));
        ATS_TRY(read_block(d, "delta_norm", first, count, ATS_N_PARTS, &d->norm, room, err));
        ATS_TRY(read_block(d, "output_change", first, count, 1, &d->change, room, err));
        for (int64_t i = 0; i < count; i++)
            if (r->status[first + i] == 0) take_case(d, first + i, i);
    }
out:
    return rc;
}

static ats_code finish_curve(reduction *d, ats_page_curve *curve, const curve_sums *sums,
                             ats_err *err)
{
    ats_arena *arena = d->reader->arena;
    ats_code rc = ATS_OK;
    if (curve->n == 0) goto out;
    ATS_TRY(ATS_NEW(arena, curve->n, &curve->treatment, err));
    ATS_TRY(ATS_NEW(arena, curve->n, &curve->control, err));
    ATS_TRY(ATS_NEW(arena, curve->n, &curve->worst, err));
    ATS_TRY(ATS_NEW(arena, curve->n, &curve->change, err));
    for (int64_t i = 0; i < curve->n; i++) {
        curve->treatment[i] = mean_of(&sums->arm[0][i]);
        curve->control[i] = mean_of(&sums->arm[1][i]);
        curve->change[i] = mean_of(&sums->change[i]);
        curve->worst[i] = (double)NAN;
        for (int64_t cell = 0; cell < d->cells; cell++)
            curve->worst[i] = fmin(curve->worst[i], mean_of(&sums->by_head[i * d->cells + cell]));
    }
out:
    return rc;
}

static ats_code finish_family(reduction *d, int64_t f, ats_err *err)
{
    ats_page_family *family = &d->reader->result->families[f];
    const family_sums *sums = &d->sums[f];
    ats_code rc;
    ATS_TRY(ATS_NEW(d->reader->arena, d->cells, &family->shift, err));
    ATS_TRY(ATS_NEW(d->reader->arena, d->cells, &family->control, err));
    for (int64_t cell = 0; cell < d->cells; cell++) {
        family->shift[cell] = mean_of(&sums->cell[0][cell]);
        family->control[cell] = mean_of(&sums->cell[1][cell]);
    }
    family->change = mean_of(&sums->change);
    for (int p = 0; p < ATS_N_PARTS; p++) family->share[p] = mean_of(&sums->share[p]);
    for (int k = 0; k < ATS_PAGE_N_CURVES; k++)
        ATS_TRY(finish_curve(d, &family->curve[k], &sums->curve[k], err));
out:
    return rc;
}

static int weaker(const void *a, const void *b)
{
    const double x = ((const ats_page_cell *)a)->shift, y = ((const ats_page_cell *)b)->shift;
    return (x > y) - (x < y);
}

/* Masses of every span in one cell, before and after. */
static ats_code read_routes(reduction *d, ats_page_cell *cell, ats_err *err)
{
    const ats_page_reader *r = d->reader;
    const ats_page_result *x = r->result;
    const int64_t row = d->cells * x->n_probes * x->n_spans;
    const struct {
        const char *name;
        int64_t row;
        double **out;
    } sides[] = {{"base_mass", (int64_t)r->sample[cell->case_index], &cell->before},
                 {"mass", cell->case_index, &cell->after}};
    const int64_t at =
        ((cell->layer * x->n_heads + cell->head) * x->n_probes + cell->probe) * x->n_spans;
    float *numbers = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(r->arena, row, &numbers, err));
    for (int side = 0; side < 2; side++) {
        ATS_TRY(ATS_NEW(r->arena, x->n_spans, sides[side].out, err));
        for (int64_t s = 0; s < x->n_spans; s++) (*sides[side].out)[s] = (double)NAN;
        if (!ats_result_has(r->file, sides[side].name)) continue;
        ATS_TRY(expect_shape(r, sides[side].name, x->n_spans, err));
        ATS_TRY(ats_result_read_rows(r->file, sides[side].name, sides[side].row, 1, numbers, err));
        for (int64_t s = 0; s < x->n_spans; s++) (*sides[side].out)[s] = (double)numbers[at + s];
    }
    cell->variant = r->variant[cell->case_index];
    cell->sample = r->sample_id[(int64_t)r->sample[cell->case_index]];
out:
    return rc;
}

static ats_code finish_worst(reduction *d, ats_err *err)
{
    enum { MOST = 10 };
    ats_page_result *x = d->reader->result;
    ats_code rc = ATS_OK;
    for (int64_t f = 0; f < x->n_families; f++)
        if (x->worst[f].case_index >= 0) x->worst[x->n_worst++] = x->worst[f];
    qsort(x->worst, (size_t)x->n_worst, sizeof *x->worst, weaker);
    if (x->n_worst > MOST) x->n_worst = MOST;
    for (int64_t i = 0; i < x->n_worst && rc == ATS_OK; i++) rc = read_routes(d, &x->worst[i], err);
    return rc;
}

ats_code ats_page_reduce(ats_page_reader *reader, ats_err *err)
{
    ats_page_result *x = reader->result;
    reduction d = {.reader = reader, .cells = x->n_layers * x->n_heads};
    ats_code rc;
    ATS_TRY(group_cases(&d, err));
    ATS_TRY(ATS_NEW0(reader->arena, x->n_families, &d.sums, err));
    ATS_TRY(ATS_NEW0(reader->arena, d.cells, &d.overall, err));
    ATS_TRY(ATS_NEW0(reader->arena, x->n_families, &x->worst, err));
    ATS_TRY(ATS_NEW(reader->arena, d.cells, &x->shift, err));
    for (int64_t f = 0; f < x->n_families; f++) {
        x->worst[f].case_index = -1;
        ATS_TRY(ATS_NEW0(reader->arena, d.cells, &d.sums[f].cell[0], err));
        ATS_TRY(ATS_NEW0(reader->arena, d.cells, &d.sums[f].cell[1], err));
        for (int k = 0; k < ATS_PAGE_N_CURVES; k++) ATS_TRY(find_values(&d, f, k, err));
    }
    ATS_TRY(scan(&d, err));
    for (int64_t f = 0; f < x->n_families; f++) ATS_TRY(finish_family(&d, f, err));
    for (int64_t i = 0; i < d.cells; i++) x->shift[i] = mean_of(&d.overall[i]);
    ATS_TRY(finish_worst(&d, err));
out:
    return rc;
}
