/* Value sums of a variant: output, regions, inserted rows and the five parts of o' - o, as sums of
 * its parts' value sums with one factor per row. Unchanged parts share the factor c = w'/w, so
 * their base sum U is taken once and used for all of them. */
#include "kernels/cpu.h"

#include <string.h>

#include "kernels/stats.h"

typedef struct vectors {
    const ats_cpu_variant *v;
    ats_stats *out;
    uint8_t *whole;   /* [n_regions] 1: no key of the region changed */
    float *unchanged; /* [width] U of the current row */
    /* Terms of a sum: [n_parts + 1] factors and rows of value sums. */
    int64_t n_terms;
    float *factor;
    const float **term;
} vectors;

/* Beyond this, c or a base weight may leave the range of double where their product does not. */
static const double SAFE_LOG = 300;

static void add(const ats_cpu_base *base, double factor, const float *states, int64_t row,
                float *out)
{
    if (states != NULL)
        base->ops->axpy(base->problem->d_v, (float)factor, states + row * base->width, out);
}

static void put(vectors *x, double factor, const float *row)
{
    x->factor[x->n_terms] = (float)factor;
    x->term[x->n_terms++] = row;
}

/* The sum of the terms; none are left. */
static void take_sum(vectors *x, int64_t count, float *out)
{
    x->v->base->ops->combine(count, x->n_terms, x->factor, x->term, out);
    x->n_terms = 0;
}

static void clear(float *x, int64_t count) { memset(x, 0, (size_t)count * sizeof *x); }

static bool plain(const ats_cpu_part *part) { return part->same && part->dv == NULL; }

static void find_whole(const vectors *x)
{
    const ats_key_tree *tree = &x->v->base->tree;
    for (int64_t r = 0; r < x->v->base->problem->n_regions; r++) {
        x->whole[r] = x->v->edit != NULL;
        for (int64_t i = 0; i < x->v->n_parts && x->whole[r]; i++) {
            const ats_cpu_part *part = &x->v->parts[i];
            if (part->run < 0 || !tree->member[r * tree->n_runs + part->run]) continue;
            if (!plain(part)) x->whole[r] = 0;
        }
    }
}

static void row_unchanged(vectors *x, int64_t row)
{
    const int64_t width = x->v->base->width;
    for (int64_t i = 0; i < x->v->n_parts; i++) {
        const ats_cpu_part *part = &x->v->parts[i];
        if (plain(part) && part->gb[row] != 0) put(x, part->gb[row], part->b->o + row * width);
    }
    take_sum(x, width, x->unchanged);
}

/* What the keys of region r add; those of whole regions are c times the base. */
static void region_output(vectors *x, int64_t r, int64_t row, float *out)
{
    const ats_cpu_variant *v = x->v;
    const ats_key_tree *tree = &v->base->tree;
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->run < 0 || part->v == NULL || part->gv[row] == 0) continue;
        if (tree->member[r * tree->n_runs + part->run])
            put(x, part->gv[row], part->v->o + row * v->base->width);
    }
    take_sum(x, v->base->problem->d_v, out);
}

/* shared: unchanged keys are c times the base. */
static void row_outputs(vectors *x, int64_t row, bool shared)
{
    const ats_cpu_variant *v = x->v;
    const ats_cpu_base *base = v->base;
    const int64_t dv = base->problem->d_v, regions = base->problem->n_regions;
    const double c = shared ? exp(v->log_c[row]) : 0;
    float *parts = x->out->route.region_output + row * regions * dv;
    const float *old = base->stats.route.region_output + row * regions * dv;
    if (shared) put(x, c, x->unchanged);
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->v == NULL || part->gv[row] == 0 || (shared && plain(part))) continue;
        put(x, part->gv[row], part->v->o + row * base->width);
    }
    take_sum(x, dv, x->out->route.output + row * dv);
    for (int64_t r = 0; r < regions; r++) {
        if (!shared || !x->whole[r]) {
            region_output(x, r, row, parts + r * dv);
            continue;
        }
        put(x, c, old + r * dv);
        take_sum(x, dv, parts + r * dv);
    }
}

/* Adds sum w vbar of a part with weight `factor`, vbar = (v + v') / 2: the base sum plus half the
 * difference, or the variant sum minus half of it. */
static void add_mean(const ats_cpu_base *base, double factor, const ats_cpu_state *state,
                     const float *difference, double half, int64_t row, float *out)
{
    add(base, factor, state->o, row, out);
    add(base, half * factor, difference, row, out);
}

/* B/A, B/A - 1, and c - B/A for keys whose logits are unchanged: 0 when there are no others. */
typedef struct ratios {
    bool survivors;
    double b_over_a, dilution, same;
} ratios;

static ratios row_ratios(const ats_cpu_variant *v, int64_t row)
{
    ratios r = {.survivors = v->log_a[row] > -(double)INFINITY};
    const double change = r.survivors ? v->log_b[row] - v->log_a[row] : 0;
    r.b_over_a = r.survivors ? exp(change) : 0;
    r.dilution = r.survivors ? expm1(change) : 0;
    r.same = v->touched_survivors ? exp(v->log_c[row]) - r.b_over_a : 0;
    return r;
}

static void part_delta(const ats_cpu_variant *v, const ats_cpu_part *part, int64_t row, ratios r,
                       float *delta)
{
    const ats_cpu_base *base = v->base;
    const int64_t dv = base->problem->d_v;
    float *reroute = delta + ATS_PART_REROUTE * dv;
    if (r.survivors)
        add_mean(base, part->gb[row] * r.dilution, part->b, part->db, 0.5, row,
                 delta + ATS_PART_DILUTION * dv);
    if (!part->same) {
        add_mean(base, part->gv[row], part->v, part->dv, -0.5, row, reroute);
        add_mean(base, -part->gb[row] * r.b_over_a, part->b, part->db, 0.5, row, reroute);
    } else if (r.same != 0) {
        add_mean(base, part->gb[row] * r.same, part->b, part->db, 0.5, row, reroute);
    }
    add(base, 0.5 * part->gb[row], part->db, row, delta + ATS_PART_PAYLOAD * dv);
    add(base, 0.5 * part->gv[row], part->dv, row, delta + ATS_PART_PAYLOAD * dv);
}

static void row_delta(const vectors *x, int64_t row)
{
    const ats_cpu_variant *v = x->v;
    const ats_cpu_base *base = v->base;
    const int64_t dv = base->problem->d_v;
    float *delta = x->out->pair.delta + row * ATS_N_PARTS * dv;
    float *inserted = x->out->pair.inserted_output + row * dv;
    const ratios r = row_ratios(v, row);
    clear(delta, ATS_N_PARTS * dv);
    clear(inserted, dv);
    if (r.dilution != 0)
        base->ops->axpy(dv, (float)r.dilution, x->unchanged, delta + ATS_PART_DILUTION * dv);
    if (r.same != 0)
        base->ops->axpy(dv, (float)r.same, x->unchanged, delta + ATS_PART_REROUTE * dv);
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (plain(part)) continue;
        if (part->survives) {
            part_delta(v, part, row, r, delta);
            continue;
        }
        if (part->b != NULL)
            add(base, -part->gb[row], part->b->o, row, delta + ATS_PART_REMOVAL * dv);
        if (part->v == NULL) continue;
        add(base, part->gv[row], part->v->o, row, delta + ATS_PART_INTRUSION * dv);
        if (part->run < 0) add(base, part->gv[row], part->v->o, row, inserted);
    }
}

ats_code ats_cpu_vectors(ats_cpu_worker *worker, const ats_cpu_variant *v, ats_stats *out,
                         ats_err *err)
{
    const ats_problem *p = v->base->problem;
    vectors x = {.v = v, .out = out};
    ats_code rc;
    ATS_TRY(ATS_NEW(&worker->arena, p->n_regions, &x.whole, err));
    ATS_TRY(ATS_NEW(&worker->arena, v->base->width, &x.unchanged, err));
    ATS_TRY(ATS_NEW(&worker->arena, v->n_parts + 1, &x.factor, err));
    ATS_TRY(ATS_NEW(&worker->arena, v->n_parts + 1, &x.term, err));
    find_whole(&x);
    for (int64_t row = 0; row < p->n_rows; row++) {
        const bool defined = ats_cpu_defined(&v->norm[row]);
        const bool pair = v->edit != NULL && ats_cpu_defined(&v->base->norm[row]);
        if (!defined || !pair) ats_stats_clear_sums(p, out, row);
        if (!defined) continue;
        if (pair) row_unchanged(&x, row);
        row_outputs(&x, row, pair && fabs(v->log_c[row]) < SAFE_LOG);
        if (pair) row_delta(&x, row);
    }
out:
    return rc;
}
