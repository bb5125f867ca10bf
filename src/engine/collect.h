/* Probe means of a few variables, kept in memory while a run writes them: what gates and the
 * summary judge. They come from the float32 numbers that go into the file, reduced over probes as
 * `detail: head` does, so both details give one verdict.
 * Ownership: tables live in the arena. */
#ifndef ATS_ENGINE_COLLECT_H
#define ATS_ENGINE_COLLECT_H

#include "engine/plan.h"
#include "metrics/record.h"

typedef struct ats_table {
    int64_t metric; /* index into plan->metrics; -1: not written */
    int64_t x;      /* span, part, or 0 */
    bool base;      /* the base twin: one row a sample */
    float *values;  /* [n_cases or n_samples, n_layers, n_heads]; NaN: undefined */
} ats_table;

/* What dose curves are made of: the target's log_mass_shift and margin, the law's prediction, the
 * inserted keys' odds, the target's margin in the base. */
typedef enum ats_curve_table {
    ATS_CURVE_SHIFT,
    ATS_CURVE_LAW,
    ATS_CURVE_ODDS,
    ATS_CURVE_MARGIN,
    ATS_CURVE_BASE_MARGIN,
    ATS_CURVE_TABLES
} ats_curve_table;
/* Place of such a table among the run's. */
int64_t ats_curve_table_index(const ats_plan *plan, ats_curve_table which);

/* tables[0]: log_mass_shift of the suite's target; tables[1 + g]: gate g; then the curves'. */
typedef struct ats_tables {
    int64_t count;
    ats_table *items;
} ats_tables;

ATS_MUST_CHECK ats_code ats_tables_make(ats_arena *arena, const ats_plan *plan, ats_tables *out,
                                        ats_err *err);
/* Takes a batch's numbers: variants [first, first + count) of a sample and layer. */
void ats_tables_take(ats_tables *tables, const ats_plan *plan, const ats_recorder *recorder,
                     int64_t sample, int64_t layer, int64_t first, int64_t count);

/* Mean over the defined probes, of the logarithm for masses. values or integers: `width` numbers a
 * cell, n_probes cells from `cell` on; x: which of them. */
float ats_probe_mean(const ats_metric *metric, const float *values, const int32_t *integers,
                     int64_t cell, int64_t n_probes, int64_t width, int64_t x);

#endif
