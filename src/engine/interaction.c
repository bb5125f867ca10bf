#include <math.h>

#include "engine/curve.h"
#include "engine/run.h"

static double shift(const ats_outcome *outcome, int64_t cells, int64_t c, int64_t cell)
{
    return (double)outcome->tables.items[0].values[c * cells + cell];
}

static ats_code put_parts(ats_arena *arena, const ats_plan *plan, ats_results *results,
                          ats_err *err)
{
    static const char *const names[] = {"first_case", "second_case"};
    static const char *const titles[] = {"case of the combination's first part alone, -1: none",
                                         "case of the combination's second part alone, -1: none"};
    const int64_t n_variants = plan->suite->n_variants;
    ats_coordinate out[2];
    ats_code rc = ATS_OK;
    for (int i = 0; i < 2; i++) {
        int64_t *values = NULL;
        ATS_TRY(ATS_NEW(arena, plan->n_cases, &values, err));
        for (int64_t c = 0; c < plan->n_cases; c++) {
            const ats_variant *v = &plan->suite->variants[c % n_variants];
            values[c] = v->n_parts == 2 ? c - c % n_variants + v->part[i] : -1;
        }
        out[i] = (ats_coordinate){.name = names[i],
                                  .axis = "case",
                                  .type = ATS_TYPE_I64,
                                  .long_name = titles[i],
                                  .i64 = values,
                                  .index_of = "case"};
    }
    rc = ats_results_coordinates(results, out, 2, err);
out:
    return rc;
}

ats_code ats_interactions_write(ats_arena *arena, const ats_plan *plan, const ats_outcome *outcome,
                                ats_results *results, ats_err *err)
{
    const int64_t cells = plan->shape.n_layers * plan->shape.n_heads;
    const int64_t n_variants = plan->suite->n_variants;
    float *values = NULL;
    bool any = false;
    ats_code rc = ATS_OK;
    for (int64_t v = 0; v < n_variants; v++) any |= plan->suite->variants[v].n_parts == 2;
    if (!any || outcome->tables.items[0].metric < 0) return ATS_OK;
    ATS_TRY(ATS_NEW(arena, plan->n_cases * cells, &values, err));
    for (int64_t c = 0; c < plan->n_cases; c++) {
        const ats_variant *v = &plan->suite->variants[c % n_variants];
        const int64_t sample = c - c % n_variants;
        for (int64_t i = 0; i < cells; i++)
            values[c * cells + i] = v->n_parts == 2
                                        ? (float)(shift(outcome, cells, c, i) -
                                                  shift(outcome, cells, sample + v->part[0], i) -
                                                  shift(outcome, cells, sample + v->part[1], i))
                                        : NAN;
    }
    ATS_TRY(put_parts(arena, plan, results, err));
    rc = ats_results_cells(results, "interaction", "nats",
                           "what two perturbations do together beyond the sum of each",
                           "log_mass_shift of the target in the combination - in the first part "
                           "alone - in the second part alone, means over probes; 0: they add up, "
                           "below 0: together they are worse",
                           values, err);
out:
    return rc;
}
