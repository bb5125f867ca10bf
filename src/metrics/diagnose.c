#include "metrics/diagnose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/diagnose_private.h"

static const char *const names[ATS_N_LABELS] = {"alignment",    "norm",  "scale",   "temperature",
                                                "mask_or_sink", "mixed", "diffuse", "undefined"};

const char *ats_cause_name(ats_cause cause) { return names[cause]; }

diagnose_view ats_diagnose_view(const diagnose_keys *keys)
{
    return (diagnose_view){.cosine = keys->cosine,
                           .clip = INFINITY,
                           .norm = NAN,
                           .q_norm = keys->q_norm,
                           .scale = keys->scale,
                           .gain = 1,
                           .temperature = keys->temperature};
}

static double logit(const diagnose_keys *keys, const diagnose_view *view, int64_t i)
{
    const bool spared = view->spare_sinks && keys->sink[i];
    const double norm = isnan(view->norm) || spared ? keys->norm[i] : view->norm;
    const double most = view->centre + view->clip;
    double cosine = view->cosine[i];
    if (!spared && cosine > most) cosine = view->centre;
    double x = view->scale * view->q_norm * norm * cosine / view->gain;
    if (keys->softcap > 0) x = keys->softcap * tanh(x / keys->softcap);
    return (x + keys->offset[i]) / view->temperature;
}

/* H = L - sum w z over keys and the null route. */
diagnose_route ats_diagnose_route(const diagnose_keys *keys, const diagnose_view *view,
                                  double *work)
{
    diagnose_route out = {.top = -1, .entropy = NAN};
    const double null_logit =
        view->everyone ? -(double)INFINITY : keys->null_logit / view->temperature;
    double most = null_logit, best = -(double)INFINITY, sum = 0, squares = 0;
    for (int64_t i = 0; i < keys->n; i++) {
        const bool on = view->everyone ? !keys->sink[i] : keys->legal[i];
        work[i] = on ? logit(keys, view, i) : -(double)INFINITY;
        if (!on) continue;
        out.legal++;
        sum += work[i];
        squares += work[i] * work[i];
        if (work[i] > best) {
            best = work[i];
            out.top = i;
        }
    }
    if (best > most) most = best;
    if (most == -(double)INFINITY) return out;
    const double n = (double)out.legal;
    out.mean = n > 0 ? sum / n : (double)NAN;
    out.variance = n > 0 ? squares / n - out.mean * out.mean : (double)NAN;
    double z = exp(null_logit - most), e = z > 0 ? z * (null_logit - most) : 0, w2 = z * z;
    for (int64_t i = 0; i < keys->n; i++) {
        const double w = exp(work[i] - most);
        if (!(w > 0)) continue;
        z += w;
        e += w * (work[i] - most);
        w2 += w * w;
    }
    out.entropy = log(z) - e / z;
    out.max_weight = exp(best - most) / z;
    out.saturation = (1 - w2 / (z * z)) / view->temperature;
    return out;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Legal keys' values, sorted, into work; returns how many. */
static int64_t sorted(const diagnose_keys *keys, const double *value, double *work)
{
    int64_t n = 0;
    for (int64_t i = 0; i < keys->n; i++)
        if (keys->legal[i]) work[n++] = value[i];
    qsort(work, (size_t)n, sizeof *work, by_value);
    return n;
}

static double quantile(const double *ordered, int64_t n, double share)
{
    if (n == 0) return (double)NAN;
    const double at = share * (double)(n - 1);
    const int64_t low = (int64_t)at;
    const double rest = at - (double)low;
    return low + 1 < n ? ordered[low] + rest * (ordered[low + 1] - ordered[low]) : ordered[low];
}

/* Largest cosine above the median that any key reaches with a query that was turned at random. */
static double chance_cosine(const diagnose_keys *keys, double *work)
{
    double most = 0;
    for (int64_t r = 0; r < ATS_DIAGNOSE_ROTATIONS; r++) {
        const int64_t n = sorted(keys, keys->rotated + r * keys->n, work);
        if (n > 0 && work[n - 1] - quantile(work, n, 0.5) > most)
            most = work[n - 1] - quantile(work, n, 0.5);
    }
    return most;
}

/* What switches each cause off. */
typedef struct switches {
    double clip, centre, norm, scale, gain;
} switches;

/* A scale of 1 is one that was forgotten; any other above 1/sqrt(d), long queries and a low
 * temperature are gain, as far as independent keys would spread by more than ATS_DIAGNOSE_SPREAD:
 * normal logits of standard deviation s cost about s^2 / 2 nats of entropy. 1/sqrt(d) makes that of
 * independent unit elements 1 (Vaswani et al. 2017, section 3.2.1). */
static switches make_switches(const diagnose_keys *keys, int64_t d, double median_norm,
                              double *work)
{
    switches s = {.clip = chance_cosine(keys, work), .norm = median_norm, .scale = 1, .gain = 1};
    s.centre = quantile(work, sorted(keys, keys->cosine, work), 0.5);
    const double spread =
        keys->scale * keys->q_norm * median_norm / sqrt((double)d) / keys->temperature;
    if (fabs(keys->scale - 1) < 0.01) {
        const double forgotten = keys->scale * sqrt((double)d);
        s.scale = fmax(1, fmin(forgotten, spread));
    }
    s.gain = fmax(1, spread / s.scale / ATS_DIAGNOSE_SPREAD);
    return s;
}

static diagnose_view switched(const diagnose_keys *keys, const switches *s, unsigned off)
{
    diagnose_view view = ats_diagnose_view(keys);
    view.spare_sinks = true;
    if (off & 1u << ATS_CAUSE_ALIGNMENT) {
        view.clip = s->clip;
        view.centre = s->centre;
    }
    if (off & 1u << ATS_CAUSE_NORM) view.norm = s->norm;
    if (off & 1u << ATS_CAUSE_SCALE) view.gain *= s->scale;
    if (off & 1u << ATS_CAUSE_TEMPERATURE) view.gain *= s->gain;
    view.everyone = (off & 1u << ATS_CAUSE_MASK_OR_SINK) != 0;
    return view;
}

static double factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

/* Shapley (1953): the mean over all orders of what a cause adds when it is switched off. */
static void divide(const double *entropy, double *share)
{
    for (int c = 0; c < ATS_N_CAUSES; c++) {
        double sum = 0;
        for (unsigned set = 0; set < 1u << ATS_N_CAUSES; set++) {
            if (set & 1u << c) continue;
            const int size = __builtin_popcount(set);
            const double weight =
                factorial(size) * factorial(ATS_N_CAUSES - 1 - size) / factorial(ATS_N_CAUSES);
            sum += weight * (entropy[set | 1u << c] - entropy[set]);
        }
        share[c] = sum > 0 ? sum : 0;
    }
}

ats_cause ats_diagnose_label(const double *share)
{
    double first = 0, second = 0, total = 0;
    int leader = 0;
    for (int c = 0; c < ATS_N_CAUSES; c++) {
        total += share[c];
        if (share[c] > first) {
            second = first;
            first = share[c];
            leader = c;
        } else if (share[c] > second) {
            second = share[c];
        }
    }
    if (!(total >= ATS_DIAGNOSE_LEAST)) return ATS_CAUSE_DIFFUSE;
    return first >= ATS_DIAGNOSE_LEAD * second ? (ats_cause)leader : ATS_CAUSE_MIXED;
}

ats_cause ats_diagnose_vote(const int64_t labels[ATS_N_LABELS])
{
    int64_t n = 0;
    for (int c = 0; c < ATS_CAUSE_UNDEFINED; c++) n += labels[c];
    for (int c = 0; c < ATS_CAUSE_UNDEFINED; c++)
        if (2 * labels[c] > n) return (ats_cause)c;
    return n > 0 ? ATS_CAUSE_MIXED : ATS_CAUSE_UNDEFINED;
}

static double entropy_of(const diagnose_keys *keys, const diagnose_view *view, double *work)
{
    return ats_diagnose_route(keys, view, work).entropy;
}

static double rms_norm(const diagnose_keys *keys)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < keys->n; i++) {
        if (!keys->legal[i]) continue;
        sum += keys->norm[i] * keys->norm[i];
        n++;
    }
    return n > 0 ? sqrt(sum / (double)n) : (double)NAN;
}

static void respond(const diagnose_keys *keys, double *work, ats_diagnosis *out)
{
    diagnose_view view = ats_diagnose_view(keys);
    view.norm = view.q_norm = 1;
    out->unit = entropy_of(keys, &view, work);
    view = ats_diagnose_view(keys);
    view.norm = rms_norm(keys);
    out->equal_norm = entropy_of(keys, &view, work);
    view = ats_diagnose_view(keys);
    view.temperature *= 2;
    out->tau2 = entropy_of(keys, &view, work);
    view.temperature *= 2;
    out->tau4 = entropy_of(keys, &view, work);
    view = ats_diagnose_view(keys);
    view.scale = 1;
    out->unscaled = entropy_of(keys, &view, work);
    for (int64_t r = 0; r < ATS_DIAGNOSE_ROTATIONS; r++) {
        view = ats_diagnose_view(keys);
        view.cosine = keys->rotated + r * keys->n;
        const diagnose_route route = ats_diagnose_route(keys, &view, work);
        out->rotated += route.entropy / ATS_DIAGNOSE_ROTATIONS;
        if (route.top >= 0 && keys->key[route.top] == out->top_key)
            out->top_stays += 1.0 / ATS_DIAGNOSE_ROTATIONS;
    }
}

/* scale^2 d var q var k with variances over elements, means taken as 0. */
static double predicted_variance(const diagnose_keys *keys, int64_t d)
{
    const double k = rms_norm(keys), x = keys->scale * keys->q_norm * k / keys->temperature;
    return x * x / (double)d;
}

ats_code ats_diagnose_row(const ats_problem *problem, int64_t row, const uint8_t *sinks,
                          const ats_diagnose_draw *draw, ats_arena *arena, ats_diagnosis *out,
                          ats_err *err)
{
    ats_diagnosis made = {.top_key = -1, .label = ATS_CAUSE_UNDEFINED};
    diagnose_keys keys;
    double *work = NULL, entropy[1u << ATS_N_CAUSES];
    ats_code rc;
    ATS_TRY(ats_diagnose_keys(problem, row, sinks, draw, arena, &keys, err));
    ATS_TRY(ATS_NEW(arena, keys.n, &work, err));
    const diagnose_view plain = ats_diagnose_view(&keys);
    const diagnose_route base = ats_diagnose_route(&keys, &plain, work);
    made.legal_keys = base.legal;
    made.entropy = base.entropy;
    if (base.top < 0) goto done;
    made.top_key = keys.key[base.top];
    made.max_weight = base.max_weight;
    made.saturation = base.saturation;
    made.logit_mean = base.mean;
    made.logit_variance = base.variance;
    made.predicted_variance = predicted_variance(&keys, problem->d_qk);
    made.query_norm = keys.q_norm;
    const int64_t n = sorted(&keys, keys.norm, work);
    for (int i = 0; i < 5; i++) made.key_norm[i] = quantile(work, n, i / 4.0);
    made.top_cosine = keys.cosine[base.top];
    made.top_norm_ratio = keys.norm[base.top] / made.key_norm[2];
    made.entropy_limit = log((double)keys.n);
    respond(&keys, work, &made);
    const switches s = make_switches(&keys, problem->d_qk, made.key_norm[2], work);
    for (unsigned off = 0; off < 1u << ATS_N_CAUSES; off++) {
        const diagnose_view view = switched(&keys, &s, off);
        entropy[off] = entropy_of(&keys, &view, work);
        if (isnan(entropy[off])) entropy[off] = base.entropy;
    }
    divide(entropy, made.share);
    for (int c = 0; c < ATS_N_CAUSES; c++) made.explained += made.share[c];
    made.label = ats_diagnose_label(made.share);
done:
    *out = made;
out:
    return rc;
}
