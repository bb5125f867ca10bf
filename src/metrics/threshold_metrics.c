/* The dose law and thresholds without a grid. L: log-sum-exp of the base row; z: logits in nats. */
#include "metrics/cell.h"
#include "metrics/table.h"
#include "metrics/threshold.h"

/* log(n r): weight of the inserted keys against the whole base route. */
static double inserted_log_odds(const ats_cell *c)
{
    const double inserted = c->pair->inserted_lse[c->row];
    return inserted == -(double)INFINITY ? (double)NAN : inserted - ats_cell_lse(c, c->base);
}

static double law_log_mass_shift(const ats_cell *c)
{
    const double x = c->pair->inserted_lse[c->row] - ats_cell_lse(c, c->base);
    return x > 0 ? -x - log1p(exp(-x)) : -log1p(exp(x));
}

static double distractor_tolerance(const ats_cell *c)
{
    if (c->span == ATS_SPAN_INSERTED || ats_cell_absent(c)) return (double)NAN;
    const double lse = c->route->region_lse[ats_cell_region(c)];
    const int64_t rows = ats_cell_legal_rows(c);
    if (rows == 0 || lse == -(double)INFINITY) return (double)NAN;
    return ats_threshold_tolerance(0.5, ats_cell_lse(c, c->route), lse - log((double)rows));
}

static double norm_capture_multiple(const ats_cell *c)
{
    const ats_problem *problem = c->problem;
    const ats_contract *contract = &problem->contract;
    const int64_t rest = problem->n_regions - 1;
    if (rest < ATS_REGIONS_UNNAMED - 1 || problem->bias != NULL || problem->alibi_slope != NULL)
        return (double)NAN;
    return ats_threshold_capture(0.5, contract->softcap, contract->temperature,
                                 c->route->region_max[c->row * problem->n_regions + rest],
                                 ats_cell_lse(c, c->route));
}

static bool listed(const int64_t *list, int64_t n, int64_t key)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] == key) return true;
    return false;
}

static double contribution_overlap(const ats_cell *c)
{
    const int64_t k = c->problem->top_k;
    const int64_t *by_weight = c->route->top_index + c->row * k;
    const int64_t *by_contribution = c->route->topc_index + c->row * k;
    int64_t n = 0, shared = 0;
    for (int64_t i = 0; i < k && by_contribution[i] != -1; i++, n++)
        shared += listed(by_weight, k, by_contribution[i]);
    return n > 0 ? (double)shared / (double)n : (double)NAN;
}

const ats_metric ats_metric_inserted_log_odds = {
    .name = "inserted_log_odds",
    .unit = "nats",
    .long_name = "inserted keys against the base's whole route",
    .definition =
        "log(n r) = log-sum-exp over the inserted keys - L, r the mean of exp(z_inserted - "
        "L); undefined where no inserted key is legal",
    .better = ATS_BETTER_LESS,
    .value = inserted_log_odds,
};

const ats_metric ats_metric_law_log_mass_shift = {
    .name = "law_log_mass_shift",
    .unit = "nats",
    .long_name = "log_mass_shift that competition alone would cause",
    .definition =
        "-log(1 + n r): the dose law, equal to log_mass_shift of every old span in overlay; "
        "what log_mass_shift has beyond it is the price of position",
    .better = ATS_BETTER_MORE,
    .value = law_log_mass_shift,
};

const ats_metric ats_metric_distractor_tolerance = {
    .name = "distractor_tolerance",
    .shape = ATS_SHAPE_SPAN,
    .unit = "rows",
    .long_name = "rows like the span's that halve everything else",
    .definition =
        "(1/keep - 1) exp(L - logmeanexp(z)) with keep = 1/2, over the span's legal keys: "
        "so many more rows of that mean leave any other span half its mass; exact in "
        "overlay",
    .base_only = true,
    .value = distractor_tolerance,
};

const ats_metric ats_metric_norm_capture_multiple = {
    .name = "norm_capture_multiple",
    .unit = "1",
    .long_name = "norm multiple at which an irrelevant key takes half the route",
    .definition =
        "smallest multiple of the norm of a key of `rest` at which it alone holds half the "
        "weight, through the soft cap: cap atanh(tau z* / cap) / x with z* = log(exp L - "
        "exp z), x its logit before the cap; inf where no such key has a positive logit or "
        "the cap forbids it; undefined with a bias",
    .base_only = true,
    .better = ATS_BETTER_MORE,
    .value = norm_capture_multiple,
};

const ats_metric ats_metric_contribution_overlap = {
    .name = "contribution_overlap",
    .unit = "1",
    .long_name = "heaviest keys that are also the largest contributions",
    .definition =
        "share of the keys of topk_contribution_index that stand in topk_index too; below "
        "1 the ranking by weight is not the ranking by contribution",
    .has_base = true,
    .value = contribution_overlap,
};
