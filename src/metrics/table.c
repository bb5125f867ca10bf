#include "metrics/table.h"

#include <string.h>

static const ats_metric *const table[] = {
#define ATS_METRIC_POINTER(name) &ats_metric_##name,
    ATS_ROUTE_METRICS(ATS_METRIC_POINTER) ATS_PAYLOAD_METRICS(ATS_METRIC_POINTER)
        ATS_THRESHOLD_METRICS(ATS_METRIC_POINTER) ATS_SHARPNESS_METRICS(ATS_METRIC_POINTER)
#undef ATS_METRIC_POINTER
};

const ats_metric *const *ats_metrics(int64_t *count)
{
    *count = (int64_t)(sizeof table / sizeof *table);
    return table;
}

const ats_metric *ats_metric_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}
