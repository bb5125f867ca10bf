#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/curve.h"
#include "engine/run.h"

typedef struct found {
    const ats_curve_group *group;
    ats_dose_median half;
    double strength; /* mean over samples, nats; NaN: none */
} found;

/* One group at one layer and head, over samples. value, flag, work: room for every sample. */
static found over_samples(const ats_plan *plan, const ats_curves *curves, int64_t g, int64_t cell,
                          double *value, int8_t *flag, int64_t *work)
{
    const int64_t n = plan->selection.n_samples, cells = curves->n_layers * curves->n_heads;
    double sum = 0;
    int64_t defined = 0;
    for (int64_t s = 0; s < n; s++) {
        const ats_dose_summary *c = &curves->cells[(s * plan->curves.count + g) * cells + cell];
        value[s] = c->half_dose;
        flag[s] = (int8_t)c->half_dose_censored;
        if (!isfinite(c->competition_strength)) continue;
        sum += c->competition_strength;
        defined++;
    }
    return (found){&plan->curves.items[g], ats_dose_kaplan_meier(value, flag, n, work),
                   defined > 0 ? sum / (double)defined : (double)NAN};
}

/* Lower medians first; a median beyond the grid comes after every one on it. */
static bool is_weaker(const found *a, const found *b)
{
    if (b->group == NULL) return true;
    const bool late_a = a->half.censored == ATS_CENSORED_RIGHT;
    const bool late_b = b->half.censored == ATS_CENSORED_RIGHT;
    if (late_a != late_b) return late_b;
    return a->half.median < b->half.median;
}

static ats_code say(ats_arena *arena, const found *f, const char **out, ats_err *err)
{
    static const char *const relation[] = {"<= ", "", "> "};
    const ats_dose_median *m = &f->half;
    char interval[64] = "", strength[48] = "";
    if (m->censored == ATS_CENSORED_NOT && m->low > 0 && isfinite(m->high))
        snprintf(interval, sizeof interval, " [%.3g, %.3g]", m->low, m->high);
    else if (m->censored == ATS_CENSORED_NOT && m->low > 0)
        snprintf(interval, sizeof interval, " [%.3g or more]", m->low);
    if (!isnan(f->strength)) snprintf(strength, sizeof strength, ", strength %+.2f", f->strength);
    const char *rest = strchr(f->group->id, '/');
    return ats_arena_printf(arena, out, err, "half dose %s%.3g %s%s%s%s%s",
                            relation[(int)m->censored + 1], m->median, f->group->dose_name,
                            interval, strength, rest != NULL ? " at " : "",
                            rest != NULL ? rest + 1 : "");
}

ats_code ats_curve_phrase(ats_arena *arena, const ats_plan *plan, const ats_curves *curves,
                          int64_t perturbation, int64_t l, int64_t h, const char **out,
                          ats_err *err)
{
    const int64_t n = plan->selection.n_samples;
    found weakest = {.group = NULL};
    double *value = NULL;
    int8_t *flag = NULL;
    int64_t *work = NULL;
    ats_code rc;
    *out = NULL;
    ATS_TRY(ATS_NEW(arena, n, &value, err));
    ATS_TRY(ATS_NEW(arena, n, &flag, err));
    ATS_TRY(ATS_NEW(arena, n, &work, err));
    for (int64_t g = 0; curves->count > 0 && g < plan->curves.count; g++) {
        const ats_curve_group *group = &plan->curves.items[g];
        if (group->perturbation != perturbation || group->depth) continue;
        const found f = over_samples(plan, curves, g, l * curves->n_heads + h, value, flag, work);
        if (!isnan(f.half.median) && is_weaker(&f, &weakest)) weakest = f;
    }
    if (weakest.group != NULL) rc = say(arena, &weakest, out, err);
out:
    return rc;
}
