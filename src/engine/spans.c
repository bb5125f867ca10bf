#include <string.h>

#include "engine/problem.h"

enum { MAX_NAMES = 64, AXIS_TAIL = 3 };

static const char *const tail_names[AXIS_TAIL] = {"sink", "recent", "rest"};

static const char *entry_name(const ats_span *span, bool by_role)
{
    return by_role ? span->role : span->name;
}

static bool folded_into_sink(const ats_span *span, bool by_role)
{
    return strcmp(entry_name(span, by_role), "sink") == 0;
}

static int64_t find_name(const char *const *names, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

/* Adds the names of one sample's spans that are not yet on the axis. */
static ats_code add_sample(const ats_sample *sample, bool by_role, const char **names,
                           const char **roles, int64_t *count, ats_err *err)
{
    for (int64_t i = 0; i < sample->n_spans; i++) {
        const ats_span *span = &sample->spans[i];
        const char *name = entry_name(span, by_role);
        if (folded_into_sink(span, by_role) || find_name(names, *count, name) >= 0) continue;
        if (strcmp(name, "recent") == 0 || strcmp(name, "rest") == 0 ||
            strcmp(name, "inserted") == 0)
            return ats_fail(err, ATS_E_INPUT,
                            "sample %s: a span %s is called %s, which the span axis uses for its "
                            "own entry; rename it in the capture",
                            sample->id, by_role ? "role" : "name", name);
        if (*count == MAX_NAMES)
            return ats_fail(err, ATS_E_INPUT,
                            "sample %s: more than %d different span %s among the chosen samples; "
                            "choose fewer samples%s",
                            sample->id, MAX_NAMES, by_role ? "roles" : "names",
                            by_role ? "" : ", or list spans by role (spans: {axis: role})");
        names[*count] = name;
        roles[*count] = span->role;
        *count += 1;
    }
    return ATS_OK;
}

ats_code ats_span_axis_of(ats_arena *arena, const ats_sample *const *samples, int64_t n_samples,
                          bool by_role, ats_span_axis *out, ats_err *err)
{
    const char **names = NULL, **roles = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, MAX_NAMES + AXIS_TAIL, &names, err));
    ATS_TRY(ATS_NEW0(arena, MAX_NAMES, &roles, err));
    for (int64_t s = 0; s < n_samples; s++)
        ATS_TRY(add_sample(samples[s], by_role, names, roles, &count, err));
    memcpy(names + count, tail_names, sizeof tail_names);
    *out = (ats_span_axis){.count = count + AXIS_TAIL,
                           .n_named = count,
                           .names = names,
                           .by_role = by_role,
                           .roles = roles};
out:
    return rc;
}

ats_code ats_span_axis_make(ats_arena *arena, const ats_capture *capture, const int64_t *samples,
                            int64_t n_samples, bool by_role, ats_span_axis *out, ats_err *err)
{
    const ats_sample **chosen = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n_samples, &chosen, err));
    for (int64_t i = 0; i < n_samples; i++) chosen[i] = &capture->samples[samples[i]];
    ATS_TRY(ats_span_axis_of(arena, chosen, n_samples, by_role, out, err));
out:
    return rc;
}

bool ats_span_axis_has(const ats_span_axis *axis, const ats_sample *sample, int64_t span)
{
    if (span >= axis->n_named) return true;
    for (int64_t i = 0; i < sample->n_spans; i++)
        if (strcmp(entry_name(&sample->spans[i], axis->by_role), axis->names[span]) == 0)
            return true;
    return false;
}

int64_t ats_span_axis_find(const ats_span_axis *axis, const char *name)
{
    if (strcmp(name, "inserted") == 0) return axis->count;
    const int64_t at = find_name(axis->names, axis->count, name);
    if (at >= 0) return at;
    return find_name(axis->roles, axis->n_named, name);
}
