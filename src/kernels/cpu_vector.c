/* Value sums of a variant: output, regions, inserted rows and the five parts of o' - o, as sums of
 * its parts' value sums with one factor per row. */
#include "kernels/cpu.h"

#include <math.h>
#include <string.h>

static void add(const ats_cpu_base *base, double factor, const float *states, int64_t row,
                float *out)
{
    if (states != NULL)
        base->ops->axpy(base->problem->d_v, (float)factor, states + row * base->width, out);
}

static void clear(float *x, int64_t count) { memset(x, 0, (size_t)count * sizeof *x); }

static void row_outputs(const ats_cpu_variant *v, int64_t row, ats_stats *out)
{
    const ats_cpu_base *base = v->base;
    const int64_t dv = base->problem->d_v, regions = base->problem->n_regions;
    float *region_output = out->route.region_output + row * regions * dv;
    clear(out->route.output + row * dv, dv);
    clear(region_output, regions * dv);
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        if (part->v == NULL || part->gv[row] == 0) continue;
        add(base, part->gv[row], part->v->o, row, out->route.output + row * dv);
        for (int64_t r = 0; part->run >= 0 && r < regions; r++)
            if (base->tree.member[r * base->tree.n_runs + part->run])
                add(base, part->gv[row], part->v->o, row, region_output + r * dv);
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

static void row_delta(const ats_cpu_variant *v, int64_t row, ats_stats *out)
{
    const ats_cpu_base *base = v->base;
    const int64_t dv = base->problem->d_v;
    float *delta = out->pair.delta + row * ATS_N_PARTS * dv;
    float *inserted = out->pair.inserted_output + row * dv;
    const bool survivors = v->log_a[row] > (double)-INFINITY;
    /* B/A, and c - B/A for keys whose logits are unchanged: 0 when there are no others. */
    const double change = survivors ? v->log_b[row] - v->log_a[row] : 0;
    const double b_over_a = survivors ? exp(change) : 0;
    const double same = v->touched_survivors ? exp(v->log_c[row]) - b_over_a : 0;
    clear(delta, ATS_N_PARTS * dv);
    clear(inserted, dv);
    for (int64_t i = 0; i < v->n_parts; i++) {
        const ats_cpu_part *part = &v->parts[i];
        const double gb = part->gb[row], gv = part->gv[row];
        if (!part->survives) {
            if (part->b != NULL) add(base, -gb, part->b->o, row, delta + ATS_PART_REMOVAL * dv);
            if (part->v == NULL) continue;
            add(base, gv, part->v->o, row, delta + ATS_PART_INTRUSION * dv);
            if (part->run < 0) add(base, gv, part->v->o, row, inserted);
            continue;
        }
        if (survivors)
            add_mean(base, gb * expm1(change), part->b, part->db, 0.5, row,
                     delta + ATS_PART_DILUTION * dv);
        float *reroute = delta + ATS_PART_REROUTE * dv;
        if (!part->same) {
            add_mean(base, gv, part->v, part->dv, -0.5, row, reroute);
            add_mean(base, -gb * b_over_a, part->b, part->db, 0.5, row, reroute);
        } else if (same != 0) {
            add_mean(base, gb * same, part->b, part->db, 0.5, row, reroute);
        }
        add(base, 0.5 * gb, part->db, row, delta + ATS_PART_PAYLOAD * dv);
        add(base, 0.5 * gv, part->dv, row, delta + ATS_PART_PAYLOAD * dv);
    }
}

void ats_cpu_vectors(const ats_cpu_variant *v, ats_stats *out)
{
    const double *base_lse = v->base->stats.route.lse;
    for (int64_t row = 0; row < v->base->problem->n_rows; row++) {
        if (!(v->lse[row] > (double)-INFINITY)) continue;
        row_outputs(v, row, out);
        if (v->edit != NULL && base_lse[row] > (double)-INFINITY) row_delta(v, row, out);
    }
}
