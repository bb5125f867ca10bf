#include <string.h>

#include "metrics/metric.h"

const char *ats_better_name(ats_better better)
{
    static const char *const names[] = {"neither", "more", "less"};
    return names[better];
}

ats_better ats_metric_better(const ats_metric *metric, const char *span, const char *target)
{
    if (metric->shape != ATS_SHAPE_SPAN || metric->better == ATS_BETTER_NEITHER)
        return metric->better;
    if (span != NULL && target != NULL && strcmp(span, target) == 0) return metric->better;
    return span != NULL && strcmp(span, "inserted") == 0 ? ATS_BETTER_LESS : ATS_BETTER_NEITHER;
}
