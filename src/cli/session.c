#include "cli/session.h"

#include "base/memory.h"

ats_code ats_session_open(const ats_args *args, ats_session *out, ats_err *err)
{
    ats_session session = {0};
    const char *const *overrides, *const *captures;
    const int64_t n_overrides = ats_args_list(args, "set", &overrides);
    const int64_t n_captures = ats_args_list(args, "capture", &captures);
    const char *memory = ats_args_value(args, "memory");
    ats_plan_options options = {.captures = captures,
                                .n_captures = n_captures,
                                .backend = ats_args_value(args, "backend"),
                                .scratch = ats_args_value(args, "scratch")};
    ats_code rc;
    if (memory != NULL && !ats_memory_parse(memory, &options.memory))
        return ats_fail(err, ATS_E_USAGE,
                        "--memory %s: not a size; write a number of bytes with K, M, G or T, such "
                        "as 512M or 2G",
                        memory);
    ATS_TRY(ats_suite_load(args->operands[0], overrides, n_overrides, &session.suite, err));
    ATS_TRY(ats_plan_make(session.suite, &options, &session.plan, err));
    *out = session;
out:
    if (rc != ATS_OK) ats_session_close(&session);
    return rc;
}

void ats_session_close(ats_session *session)
{
    ats_plan_free(session->plan);
    ats_suite_free(session->suite);
    *session = (ats_session){0};
}

const char *ats_human_bytes(int64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(out, size, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

const char *ats_human_seconds(double seconds, char *out, size_t size)
{
    if (seconds < 0.9995)
        snprintf(out, size, "%.0f ms", 1e3 * seconds);
    else if (seconds < 99.95)
        snprintf(out, size, "%.1f s", seconds);
    else if (seconds < 5970)
        snprintf(out, size, "%.0f min", seconds / 60);
    else
        snprintf(out, size, "%.1f h", seconds / 3600);
    return out;
}
