/* Where the weight goes. L, L': log-sum-exp of base and variant; w, w': weights. */
#include "metrics/cell.h"
#include "metrics/table.h"

static double lse(const ats_cell *c) { return ats_cell_lse(c, c->route); }

static double lse_keys(const ats_cell *c)
{
    const double x = c->route->lse_keys[c->row];
    return x == -(double)INFINITY ? (double)NAN : x;
}

static double competition_shift(const ats_cell *c)
{
    return ats_cell_lse(c, c->base) - ats_cell_lse(c, c->route);
}

static double lse_shift(const ats_cell *c) { return -competition_shift(c); }

static double mass(const ats_cell *c) { return exp(ats_cell_span_lse(c, false) - lse(c)); }

static double own_logit_shift(const ats_cell *c)
{
    const double before = ats_cell_span_lse(c, true), after = ats_cell_span_lse(c, false);
    return before == -(double)INFINITY || after == -(double)INFINITY ? (double)NAN : after - before;
}

static double log_mass_shift(const ats_cell *c)
{
    return own_logit_shift(c) + competition_shift(c);
}

static double retention(const ats_cell *c)
{
    const double before = ats_cell_span_lse(c, true), after = ats_cell_span_lse(c, false);
    if (before == -(double)INFINITY) return (double)NAN;
    return exp(after - before + competition_shift(c)); /* exp(-inf) = 0: nothing of it is left */
}

static bool span_has_key(const ats_cell *c)
{
    return c->span != ATS_SPAN_INSERTED && !ats_cell_absent(c) &&
           c->route->region_max[ats_cell_region(c)] > -(double)INFINITY;
}

static double rank(const ats_cell *c)
{
    if (!span_has_key(c)) return (double)NAN;
    return 1.0 + (double)c->route->region_heavier[ats_cell_region(c)];
}

static double margin(const ats_cell *c)
{
    if (!span_has_key(c)) return (double)NAN;
    const double outside = c->route->region_max_out[ats_cell_region(c)];
    return outside == -(double)INFINITY ? (double)NAN
                                        : c->route->region_max[ats_cell_region(c)] - outside;
}

static double intrusion(const ats_cell *c) { return c->pair->intrusion[c->row]; }
static double removal(const ats_cell *c) { return c->pair->removal[c->row]; }
static double tv(const ats_cell *c) { return c->pair->tv[c->row]; }
static double js(const ats_cell *c) { return c->pair->js[c->row]; }
static double hellinger(const ats_cell *c) { return c->pair->hellinger[c->row]; }
static double reroute_tv(const ats_cell *c) { return c->pair->reroute_tv[c->row]; }
static double reroute_js(const ats_cell *c) { return c->pair->reroute_js[c->row]; }

static double entropy(const ats_cell *c) { return c->route->entropy[c->row]; }
static double effective_keys(const ats_cell *c) { return exp(c->route->entropy[c->row]); }
static double effective_keys_n2(const ats_cell *c) { return 1.0 / c->route->sum_w2[c->row]; }
static double max_weight(const ats_cell *c) { return c->route->max_weight[c->row]; }
static double null_mass(const ats_cell *c) { return c->route->null_weight[c->row]; }
static double legal_keys(const ats_cell *c) { return (double)c->route->legal_keys[c->row]; }

static double top_key(const ats_cell *c)
{
    const int64_t key = c->route->top_index[c->row * c->problem->top_k];
    if (key == -1) return ATS_INTEGER_UNDEFINED;
    return key < -1 ? -1.0 : (double)key;
}

static double topk_index(const ats_cell *c)
{
    return (double)c->route->top_index[c->row * c->problem->top_k + c->part];
}

static double topk_weight(const ats_cell *c)
{
    return c->route->top_weight[c->row * c->problem->top_k + c->part];
}

static double share_of(int64_t overlap, int64_t k)
{
    return k > 0 ? (double)overlap / (double)k : (double)NAN;
}

static double topk_overlap(const ats_cell *c)
{
    return share_of(c->pair->overlap_all[c->row], c->pair->overlap_k_all[c->row]);
}

static double topk_overlap_survivors(const ats_cell *c)
{
    return share_of(c->pair->overlap_survivors[c->row], c->pair->overlap_k_survivors[c->row]);
}

static double sink_mass(const ats_cell *c)
{
    ats_cell sink = *c;
    sink.span = c->problem->n_regions - ATS_REGIONS_UNNAMED;
    return sink.span >= 0 ? mass(&sink) : (double)NAN;
}

const ats_metric ats_metric_lse = {
    .name = "lse",
    .unit = "nats",
    .long_name = "log-sum-exp of the row",
    .definition = "L' = log(sum over legal keys of exp(z') + exp(sink / tau))",
    .has_base = true,
    .value = lse,
};

const ats_metric ats_metric_lse_keys = {
    .name = "lse_keys",
    .unit = "nats",
    .long_name = "log-sum-exp over keys alone",
    .definition = "log of the sum over legal keys of exp(z'), without the sink logit; undefined "
                  "without a legal key",
    .has_base = true,
    .value = lse_keys,
};

const ats_metric ats_metric_lse_shift = {
    .name = "lse_shift",
    .unit = "nats",
    .long_name = "change of the log-sum-exp",
    .definition = "L' - L",
    .better = ATS_BETTER_LESS,
    .value = lse_shift,
};

const ats_metric ats_metric_competition_shift = {
    .name = "competition_shift",
    .unit = "nats",
    .long_name = "what competing keys did to every old weight",
    .definition = "-(L' - L); log_mass_shift = own_logit_shift + competition_shift",
    .better = ATS_BETTER_MORE,
    .value = competition_shift,
};

const ats_metric ats_metric_mass = {
    .name = "mass",
    .shape = ATS_SHAPE_SPAN,
    .unit = "1",
    .long_name = "weight on the span",
    .definition = "sum of w' over the span's keys; 0 without a legal key, undefined where the "
                  "sample lacks the span",
    .has_base = true,
    .better = ATS_BETTER_MORE,
    .value = mass,
    .log_mean = true,
};

const ats_metric ats_metric_log_mass_shift = {
    .name = "log_mass_shift",
    .shape = ATS_SHAPE_SPAN,
    .unit = "nats",
    .long_name = "change of the span's log mass",
    .definition = "log mass' - log mass; undefined where either mass has no legal key",
    .better = ATS_BETTER_MORE,
    .value = log_mass_shift,
};

const ats_metric ats_metric_own_logit_shift = {
    .name = "own_logit_shift",
    .shape = ATS_SHAPE_SPAN,
    .unit = "nats",
    .long_name = "what happened to the span's own logits",
    .definition = "log-sum-exp' over the span - log-sum-exp over the span",
    .better = ATS_BETTER_MORE,
    .value = own_logit_shift,
};

const ats_metric ats_metric_retention = {
    .name = "retention",
    .shape = ATS_SHAPE_SPAN,
    .unit = "1",
    .long_name = "share of the span's mass that is left",
    .definition = "mass' / mass; undefined where the base has no mass on the span",
    .better = ATS_BETTER_MORE,
    .value = retention,
    .log_mean = true,
};

const ats_metric ats_metric_rank = {
    .name = "rank",
    .shape = ATS_SHAPE_SPAN,
    .unit = "1",
    .long_name = "rank of the span's heaviest key",
    .definition = "1 + number of keys outside the span heavier than its heaviest key; undefined "
                  "without a legal key and for `inserted`",
    .has_base = true,
    .better = ATS_BETTER_LESS,
    .value = rank,
};

const ats_metric ats_metric_margin = {
    .name = "margin",
    .shape = ATS_SHAPE_SPAN,
    .unit = "nats",
    .long_name = "lead of the span's best logit",
    .definition = "best logit in the span - best logit outside it (inserted keys count); the route "
                  "flips at 0; undefined without a legal key on both sides and for `inserted`",
    .has_base = true,
    .better = ATS_BETTER_MORE,
    .value = margin,
};

const ats_metric ats_metric_intrusion = {
    .name = "intrusion",
    .unit = "1",
    .long_name = "weight taken by new keys",
    .definition = "mass' on I, the keys legal in the variant only",
    .better = ATS_BETTER_LESS,
    .value = intrusion,
};

const ats_metric ats_metric_removal = {
    .name = "removal",
    .unit = "1",
    .long_name = "weight that lost its key",
    .definition = "mass on R, the keys legal in the base only",
    .better = ATS_BETTER_LESS,
    .value = removal,
};

const ats_metric ats_metric_tv = {
    .name = "tv",
    .unit = "1",
    .long_name = "total variation: share of the route that moved",
    .definition = "1/2 [sum over S of abs(w - w') + removal + intrusion], S the keys legal in both",
    .better = ATS_BETTER_LESS,
    .value = tv,
};

const ats_metric ats_metric_js = {
    .name = "js",
    .unit = "bit",
    .long_name = "Jensen-Shannon divergence of the routes",
    .definition = "over the union of keys, logarithm to base 2, 0 log 0 = 0",
    .better = ATS_BETTER_LESS,
    .value = js,
};

const ats_metric ats_metric_hellinger = {
    .name = "hellinger",
    .unit = "1",
    .long_name = "Hellinger distance of the routes",
    .definition = "sqrt(1 - sum over S of sqrt(w w'))",
    .better = ATS_BETTER_LESS,
    .value = hellinger,
};

const ats_metric ats_metric_reroute_tv = {
    .name = "reroute_tv",
    .unit = "1",
    .long_name = "total variation among survivors",
    .definition = "tv between the two routes conditioned on S: re-ranking with dilution taken out",
    .better = ATS_BETTER_LESS,
    .value = reroute_tv,
};

const ats_metric ats_metric_reroute_js = {
    .name = "reroute_js",
    .unit = "bit",
    .long_name = "Jensen-Shannon divergence among survivors",
    .definition = "js between the two routes conditioned on S",
    .better = ATS_BETTER_LESS,
    .value = reroute_js,
};

const ats_metric ats_metric_entropy = {
    .name = "entropy",
    .unit = "nats",
    .long_name = "entropy of the route",
    .definition = "H' = -sum w' log w' = L' - sum w' z', null route included, 0 log 0 = 0",
    .has_base = true,
    .value = entropy,
};

const ats_metric ats_metric_effective_keys = {
    .name = "effective_keys",
    .unit = "1",
    .long_name = "effective number of keys N1",
    .definition = "exp(H')",
    .has_base = true,
    .value = effective_keys,
};

const ats_metric ats_metric_effective_keys_n2 = {
    .name = "effective_keys_n2",
    .unit = "1",
    .long_name = "effective number of keys N2 (participation)",
    .definition = "1 / sum w'^2, null route included",
    .has_base = true,
    .value = effective_keys_n2,
};

const ats_metric ats_metric_max_weight = {
    .name = "max_weight",
    .unit = "1",
    .long_name = "weight of the heaviest key",
    .definition = "max w' over keys",
    .has_base = true,
    .value = max_weight,
};

const ats_metric ats_metric_top_key = {
    .name = "top_key",
    .unit = "1",
    .long_name = "base index of the heaviest key",
    .definition = "argmax w'; -1: an inserted key; ties to the earlier key",
    .has_base = true,
    .integer = true,
    .value = top_key,
    .fill = ATS_INTEGER_UNDEFINED,
};

const ats_metric ats_metric_topk_index = {
    .name = "topk_index",
    .shape = ATS_SHAPE_TOP,
    .unit = "1",
    .long_name = "base indices of the heaviest keys",
    .definition = "heaviest first, ties to the earlier key, weight > 0 only; inserted row j is "
                  "-2 - j; -1 pads",
    .has_base = true,
    .integer = true,
    .value = topk_index,
    .fill = -1,
};

const ats_metric ats_metric_topk_weight = {
    .name = "topk_weight",
    .shape = ATS_SHAPE_TOP,
    .unit = "1",
    .long_name = "weights of the heaviest keys",
    .definition = "w' of the keys of topk_index",
    .has_base = true,
    .value = topk_weight,
};

const ats_metric ats_metric_topk_overlap = {
    .name = "topk_overlap",
    .unit = "1",
    .long_name = "overlap of the heaviest keys with the base's",
    .definition = "shared members / k of the k heaviest keys of base and variant; k shrinks to the "
                  "longer list where fewer keys are legal",
    .better = ATS_BETTER_MORE,
    .value = topk_overlap,
};

const ats_metric ats_metric_topk_overlap_survivors = {
    .name = "topk_overlap_survivors",
    .unit = "1",
    .long_name = "overlap of the heaviest survivors",
    .definition = "topk_overlap of both lists restricted to keys of S",
    .better = ATS_BETTER_MORE,
    .value = topk_overlap_survivors,
};

const ats_metric ats_metric_null_mass = {
    .name = "null_mass",
    .unit = "1",
    .long_name = "weight of the null route",
    .definition = "exp(sink / tau - L'); 0 without a sink logit",
    .has_base = true,
    .value = null_mass,
    .log_mean = true,
};

const ats_metric ats_metric_sink_mass = {
    .name = "sink_mass",
    .unit = "1",
    .long_name = "weight on sink rows",
    .definition = "mass on the first 4 rows and rows flagged as sinks: mass of the span `sink`",
    .has_base = true,
    .value = sink_mass,
    .log_mean = true,
};

const ats_metric ats_metric_legal_keys = {
    .name = "legal_keys",
    .unit = "1",
    .long_name = "keys the probe may attend",
    .definition = "count of legal keys; 0 where the route is undefined",
    .has_base = true,
    .value = legal_keys,
};
