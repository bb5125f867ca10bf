#include "kernels/backend.h"

#include <stdio.h>
#include <string.h>

#include "kernels/attention_device.h"
#include "kernels/reference.h"

extern const ats_backend ats_backend_cpu; /* attention_cpu.c */

static const ats_backend *const TABLE[] = {
    &ats_backend_reference,
    &ats_backend_cpu,
    &ats_backend_cuda,
    &ats_backend_cublas,
};
enum { N_BACKENDS = sizeof TABLE / sizeof *TABLE };

/* What `auto` tries, best first; the reference is chosen only by name. */
static const ats_backend *const AUTO[] = {&ats_backend_cuda, &ats_backend_cpu};
enum { N_AUTO = sizeof AUTO / sizeof *AUTO };

const ats_backend *const *ats_backends(int64_t *count)
{
    *count = N_BACKENDS;
    return TABLE;
}

/* A problem of one row and no keys, to ask what widths a backend takes. */
static ats_problem of_widths(int64_t d_qk, int64_t d_v)
{
    return (ats_problem){.contract = {.scale = 1, .temperature = 1},
                         .d_qk = d_qk,
                         .d_v = d_v,
                         .n_rows = 1,
                         .n_probes = 1,
                         .top_k = 1};
}

static ats_code find_auto(int64_t d_qk, int64_t d_v, const ats_backend **out, ats_err *err)
{
    const ats_problem problem = of_widths(d_qk, d_v);
    ats_code rc = ATS_E_DEVICE;
    for (int i = 0; i < N_AUTO; i++) {
        rc = AUTO[i]->probe(err);
        if (rc == ATS_OK) rc = AUTO[i]->supports(&problem, err);
        if (rc != ATS_OK) continue;
        *out = AUTO[i];
        return ATS_OK;
    }
    return rc;
}

ats_code ats_backend_find_for(const char *name, int64_t d_qk, int64_t d_v, const ats_backend **out,
                              ats_err *err)
{
    if (strcmp(name, "auto") == 0) return find_auto(d_qk, d_v, out, err);
    return ats_backend_find(name, out, err);
}

ats_code ats_backend_find(const char *name, const ats_backend **out, ats_err *err)
{
    if (strcmp(name, "auto") == 0) return find_auto(1, 1, out, err);
    for (int i = 0; i < N_BACKENDS; i++) {
        if (strcmp(TABLE[i]->name, name) != 0) continue;
        const ats_code rc = TABLE[i]->probe(err);
        if (rc == ATS_OK) *out = TABLE[i];
        return rc;
    }
    char names[256] = "auto";
    size_t used = strlen(names);
    for (int i = 0; i < N_BACKENDS; i++) {
        const int wrote = snprintf(names + used, sizeof names - used, ", %s", TABLE[i]->name);
        if (wrote < 0 || (size_t)wrote >= sizeof names - used) break;
        used += (size_t)wrote;
    }
    return ats_fail(err, ATS_E_USAGE, "there is no backend \"%s\"; choose one of: %s", name, names);
}
