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

static ats_code find_auto(const ats_backend **out, ats_err *err)
{
    ats_code rc = ATS_E_DEVICE;
    for (int i = 0; i < N_AUTO; i++) {
        rc = AUTO[i]->probe(err);
        if (rc != ATS_OK) continue;
        *out = AUTO[i];
        return ATS_OK;
    }
    return rc;
}

ats_code ats_backend_find(const char *name, const ats_backend **out, ats_err *err)
{
    if (strcmp(name, "auto") == 0) return find_auto(out, err);
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
