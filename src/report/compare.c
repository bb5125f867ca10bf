#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare_private.h"
#include "report/html.h"

void ats_compare_visible(ats_text *text, const char *value) { ats_html_visible(text, value); }

const char *ats_compare_number(double value, char out[32])
{
    const double size = fabs(value);
    if (isnan(value))
        snprintf(out, 32, "-");
    else if (size != 0 && (size < 1e-3 || size >= 1e5))
        snprintf(out, 32, "%.1e", value);
    else
        snprintf(out, 32, "%.*f", size < 10 ? 4 : size < 1000 ? 3 : 1, size == 0 ? 0.0 : value);
    return out;
}

const char *ats_compare_bound(double value, char out[32])
{
    const double size = fabs(value);
    snprintf(out, 32, size != 0 && size < 1e-3 ? "%.0e" : size < 0.01 ? "%.2g" : "%.3g", value);
    return out;
}

bool ats_compare_claims(const ats_compare_numbers *x, double alpha)
{
    return x->p <= alpha && (x->interval.low > 0 || x->interval.high < 0);
}

/* Rows of the gates: numbers, then claims. */
static ats_code judge_gates(ats_compare_state *s, ats_compare_resamples *resamples, ats_err *err)
{
    const int64_t n_clusters = s->out->n_clusters, n_gates = s->options->n_gates;
    double *side[2] = {NULL, NULL};
    ats_code rc;
    for (int k = 0; k < 2; k++) ATS_TRY(ATS_NEW(s->arena, n_clusters, &side[k], err));
    for (int64_t g = 0; g < n_gates; g++) {
        ats_compare_row *row = &s->rows[g];
        double *values = NULL;
        *row = (ats_compare_row){.gate = &s->options->gates[g],
                                 .name = s->options->gates[g].name,
                                 .n_cases = s->gate_cases[g],
                                 .p_adjusted = NAN};
        for (int k = 0; k < 2; k++) ats_compare_clusters(s, s->gate[k] + g * s->n_pairs, side[k]);
        ATS_TRY(ATS_NEW(s->arena, n_clusters, &values, err));
        for (int64_t i = 0; i < n_clusters; i++) values[i] = side[1][i] - side[0][i];
        row->values = values;
        ATS_TRY(
            ats_compare_measure(resamples, side[0], side[1], n_clusters, true, &row->numbers, err));
        if (resamples != NULL) continue;
        ats_compare_judge_exact(row->gate, s->out->noise_floor, row);
        ATS_TRY(ats_compare_sentence(s->arena, s->options, n_gates, true, row, err));
    }
    if (resamples != NULL)
        ATS_TRY(ats_compare_judge(s->arena, s->options, n_clusters, s->rows, n_gates, err));
out:
    return rc;
}

/* The one verdict, worst first; text, JUnit, JSON and exit status all come from it. */
static ats_code conclude(ats_compare_state *s, ats_err *err)
{
    ats_comparison *out = s->out;
    int64_t claims[4] = {0};
    for (int64_t g = 0; g < out->n_gates; g++) claims[out->rows[g].claim]++;
    if (claims[ATS_CLAIM_REGRESSED] > 0) {
        out->verdict = "regressed";
        out->code = ATS_E_GATE;
        return ats_arena_printf(s->arena, &out->sentence, err, "%lld of %lld gates regressed",
                                (long long)claims[ATS_CLAIM_REGRESSED], (long long)out->n_gates);
    }
    if (out->n_refused > 0) {
        out->verdict = "failed";
        out->code = ATS_E_GATE;
        return ats_arena_printf(s->arena, &out->sentence, err,
                                "%lld missing, extra or undefined cases were not allowed by name",
                                (long long)out->n_refused);
    }
    if (out->exact && out->n_differences > 0) {
        out->verdict = "differs";
        out->code = ATS_E_GATE;
        return ats_arena_printf(s->arena, &out->sentence, err,
                                "the same captures gave other numbers in %lld variables",
                                (long long)out->n_differences);
    }
    if (out->exact) {
        out->verdict = "equal";
        out->code = ATS_OK;
        out->sentence = "the same captures gave the same numbers";
        return ATS_OK;
    }
    if (out->n_gates == 0 || claims[ATS_CLAIM_INCONCLUSIVE] > 0) {
        out->verdict = "inconclusive";
        out->code = ATS_E_INCONCLUSIVE;
        if (out->n_gates == 0)
            out->sentence = "no gate has max_drop, max_rise or equivalence, so nothing was judged";
        else
            return ats_arena_printf(
                s->arena, &out->sentence, err, "%lld of %lld gates inconclusive, none regressed",
                (long long)claims[ATS_CLAIM_INCONCLUSIVE], (long long)out->n_gates);
        return ATS_OK;
    }
    out->verdict = claims[ATS_CLAIM_IMPROVED] > 0 ? "improved" : "unchanged";
    out->code = ATS_OK;
    return ats_arena_printf(s->arena, &out->sentence, err, "%lld gates unchanged, %lld improved",
                            (long long)claims[ATS_CLAIM_UNCHANGED],
                            (long long)claims[ATS_CLAIM_IMPROVED]);
}

static ats_code compare(ats_compare_state *s, ats_err *err)
{
    ats_comparison *out = s->out;
    ats_compare_resamples *resamples = NULL;
    ats_code rc;
    ATS_TRY(ats_compare_open(s, err));
    ATS_TRY(ats_compare_pair_up(s, err));
    ATS_TRY(ats_compare_read(s, err));
    ATS_TRY(ATS_NEW0(s->arena, out->n_gates + out->n_what, &s->rows, err));
    out->rows = s->rows;
    out->n_rows = out->n_gates;
    if (!out->exact) {
        ATS_TRY(ATS_NEW0(s->arena, 1, &resamples, err));
        *resamples = (ats_compare_resamples){
            .arena = s->arena, .seed = out->seed, .resamples = out->resamples, .alpha = out->alpha};
    }
    ATS_TRY(judge_gates(s, resamples, err));
    if (s->target >= 0) ATS_TRY(ats_compare_explore(s, resamples, err));
    if (out->exact) ATS_TRY(ats_compare_exact(s, err));
    rc = conclude(s, err);
out:
    return rc;
}

ats_code ats_compare(const ats_compare_options *options, ats_comparison **out, ats_err *err)
{
    ats_comparison *made = calloc(1, sizeof *made);
    if (made == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory");
    ats_compare_options filled = *options;
    if (!(filled.alpha > 0)) filled.alpha = 0.05;
    if (filled.resamples <= 0) filled.resamples = 10000;
    if (filled.seed == 0) filled.seed = 1;
    ats_compare_state s = {
        .arena = &made->arena, .options = &filled, .out = made, .err = err, .target = -1};
    ats_code rc;
    made->alpha = filled.alpha;
    made->resamples = filled.resamples;
    made->seed = filled.seed;
    made->n_gates = filled.n_gates;
    made->n_absolute = filled.n_absolute;
    ATS_TRY(ats_arena_strdup(&made->arena, options->base, &made->base, err));
    ATS_TRY(ats_arena_strdup(&made->arena, options->candidate, &made->candidate, err));
    ATS_TRY(compare(&s, err));
    *out = made;
    made = NULL;
out:
    ats_compare_close(&s);
    ats_comparison_free(made);
    return rc;
}

void ats_comparison_free(ats_comparison *comparison)
{
    if (comparison == NULL) return;
    ats_arena_fini(&comparison->arena);
    free(comparison);
}
