/* Absolute gates (min, max) judged after a run; max_drop, max_rise and equivalence are for `compare`.
 *
 * A gate's number: mean over probes, then `reduce` over heads, over layers, over the cases of a
 * sample and over samples. Undefined cells are left out and counted; skipped cases are left out
 * and counted; a failed case, or a case without any defined cell, fails the gate.
 * Ownership: sentences live in the arena. */
#ifndef ATS_ENGINE_GATES_H
#define ATS_ENGINE_GATES_H

#include "engine/run.h"

typedef struct ats_gate_verdict {
    const ats_gate *gate;
    bool judged; /* it has a min or a max */
    bool passed;
    double value; /* NaN: none */
    int64_t n_cases, n_skipped, n_failed,
        n_undefined; /* cases that match; undefined of those run */
    const char *sentence;
} ats_gate_verdict;

typedef struct ats_verdict {
    int64_t n_gates, n_judged, n_failed;
    const ats_gate_verdict *gates;
    ats_code code; /* ATS_OK, ATS_E_GATE, or ATS_E_INCONCLUSIVE: cases failed and no gate did */
} ats_verdict;

/* The one verdict: text and exit status both come from it. */
ATS_MUST_CHECK ats_code ats_gates_judge(ats_arena *arena, const ats_plan *plan,
                                        const ats_outcome *outcome, ats_verdict *out, ats_err *err);
/* The verdicts as a JSON list [{name, verdict, value, sentence}], verdict one of passed, failed,
 * not judged; value null where there is none. For the result file. */
ATS_MUST_CHECK ats_code ats_gates_json(ats_arena *arena, const ats_verdict *verdict,
                                       const char **out, ats_err *err);
/* Exit code of `failed` gates and `broken` cases: never a count. */
ats_code ats_verdict_code(int64_t failed, int64_t broken);

#endif
