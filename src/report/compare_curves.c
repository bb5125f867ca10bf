/* Half doses and strengths of both results, from their variables along `curve`. */
#include <math.h>
#include <string.h>

#include "report/compare_private.h"

typedef struct reader {
    ats_compare_state *s;
    ats_arena arena; /* of what is read */
    ats_result_curves side[2];
    int64_t n_twins;
    struct {
        int64_t pair, curve[2]; /* the same curve of a paired sample on both sides */
    } * twins;
    int64_t cells; /* layers x heads */
} reader;

static ats_code read_sides(reader *r, bool *both, ats_err *err)
{
    const ats_comparison *out = r->s->out;
    ats_code rc = ATS_OK;
    *both = true;
    for (int k = 0; k < 2 && rc == ATS_OK; k++) {
        const ats_compare_side *side = &r->s->side[k];
        rc = ats_result_curves_read(side->file, &r->arena, &r->side[k], err);
        if (rc != ATS_OK) return ats_prepend(err, rc, "%s", side->path);
        *both &= r->side[k].n > 0 && r->side[k].n_layers == out->n_layers &&
                 r->side[k].n_heads == out->n_heads;
    }
    return rc;
}

static ats_code find_twins(reader *r, ats_err *err)
{
    const ats_result_curves *a = &r->side[0], *b = &r->side[1];
    ats_code rc = ATS_NEW(&r->arena, a->n, &r->twins, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < r->s->n_pairs; i++)
        for (int64_t p = 0; p < a->n && r->n_twins < a->n; p++) {
            if (a->sample[p] != r->s->pairs[i].base) continue;
            for (int64_t q = 0; q < b->n; q++) {
                if (b->sample[q] != r->s->pairs[i].candidate || strcmp(a->id[p], b->id[q]) != 0)
                    continue;
                r->twins[r->n_twins].pair = i;
                r->twins[r->n_twins].curve[0] = p;
                r->twins[r->n_twins++].curve[1] = q;
                break;
            }
        }
    return ATS_OK;
}

/* Is a half dose known to be below another? Censored to the left: at or below its number, to the
 * right: above it. */
static bool surely_below(double a, int8_t censored_a, double b, int8_t censored_b)
{
    if (censored_a == ATS_CENSORED_RIGHT || censored_b == ATS_CENSORED_LEFT) return false;
    return a < b || (a == b && censored_b == ATS_CENSORED_RIGHT);
}

static void count_pair(ats_compare_curve *curve, const double *half, const int8_t *censored)
{
    if (isnan(half[0]) || isnan(half[1]))
        curve->n_hidden++;
    else if (surely_below(half[1], censored[1], half[0], censored[0]))
        curve->n_lower++;
    else if (surely_below(half[0], censored[0], half[1], censored[1]))
        curve->n_higher++;
    else if (half[0] == half[1] && censored[0] == ATS_CENSORED_NOT &&
             censored[1] == ATS_CENSORED_NOT)
        curve->n_equal++;
    else
        curve->n_hidden++;
}

/* Half doses of a perturbation: the pairs one by one, and a median of each side. */
static void halves(const reader *r, ats_compare_curve *curve, double *values[2],
                   int8_t *censored[2], int64_t *work)
{
    int64_t n = 0;
    for (int64_t t = 0; t < r->n_twins; t++) {
        if (strcmp(r->side[0].perturbation[r->twins[t].curve[0]], curve->perturbation) != 0)
            continue;
        for (int64_t cell = 0; cell < r->cells; cell++, n++) {
            double half[2];
            int8_t flag[2];
            for (int k = 0; k < 2; k++) {
                const int64_t at = r->twins[t].curve[k] * r->cells + cell;
                half[k] = values[k][n] = r->side[k].half_dose[at];
                flag[k] = censored[k][n] = r->side[k].half_dose_censored[at];
            }
            count_pair(curve, half, flag);
        }
    }
    for (int k = 0; k < 2; k++)
        curve->half[k] = ats_dose_kaplan_meier(values[k], censored[k], n, work);
    curve->measured = n > 0;
}

/* Mean competition_strength of each sample over curves and heads that have it on both sides. */
static ats_code strength(const reader *r, ats_compare_resamples *resamples,
                         ats_compare_curve *curve, double *pairs[2], double *clusters[2],
                         ats_err *err)
{
    const ats_compare_state *s = r->s;
    for (int64_t i = 0; i < s->n_pairs; i++) {
        double sum[2] = {0, 0};
        int64_t n = 0;
        for (int64_t t = 0; t < r->n_twins; t++) {
            if (r->twins[t].pair != i ||
                strcmp(r->side[0].perturbation[r->twins[t].curve[0]], curve->perturbation) != 0)
                continue;
            for (int64_t cell = 0; cell < r->cells; cell++) {
                double x[2];
                for (int k = 0; k < 2; k++)
                    x[k] = r->side[k].competition_strength[r->twins[t].curve[k] * r->cells + cell];
                if (!isfinite(x[0]) || !isfinite(x[1])) continue;
                for (int k = 0; k < 2; k++) sum[k] += x[k];
                n++;
            }
        }
        for (int k = 0; k < 2; k++) pairs[k][i] = n > 0 ? sum[k] / (double)n : (double)NAN;
    }
    for (int k = 0; k < 2; k++) ats_compare_clusters(s, pairs[k], clusters[k]);
    return ats_compare_measure(resamples, clusters[0], clusters[1], s->out->n_clusters, true,
                               &curve->strength, err);
}

ats_code ats_compare_curves(ats_compare_state *s, ats_compare_resamples *resamples,
                            ats_compare_curve *curves, int64_t count, ats_err *err)
{
    reader r = {.s = s, .cells = s->out->n_layers * s->out->n_heads};
    double *values[2], *pairs[2], *clusters[2];
    int8_t *censored[2];
    int64_t *work = NULL;
    bool both = false;
    ats_code rc;
    ATS_TRY(read_sides(&r, &both, err));
    if (!both) goto out;
    ATS_TRY(find_twins(&r, err));
    const int64_t n = r.n_twins * r.cells;
    for (int k = 0; k < 2; k++) {
        ATS_TRY(ATS_NEW(&r.arena, n, &values[k], err));
        ATS_TRY(ATS_NEW(&r.arena, n, &censored[k], err));
        ATS_TRY(ATS_NEW(&r.arena, s->n_pairs, &pairs[k], err));
        ATS_TRY(ATS_NEW(&r.arena, s->out->n_clusters, &clusters[k], err));
    }
    ATS_TRY(ATS_NEW(&r.arena, n, &work, err));
    for (int64_t c = 0; c < count; c++) {
        halves(&r, &curves[c], values, censored, work);
        if (curves[c].measured) ATS_TRY(strength(&r, resamples, &curves[c], pairs, clusters, err));
    }
out:
    ats_arena_fini(&r.arena);
    return rc;
}
