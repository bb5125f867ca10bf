/* What comes back. o, o': outputs; c = sum over a span of w v; `_resid`: behind the head's W_O. */
#include "metrics/cell.h"
#include "metrics/fold.h"
#include "metrics/table.h"

static const float *output_of(const ats_cell *c, const ats_route_stats *route)
{
    return route->output + c->row * c->problem->d_v;
}

static double norm(const ats_cell *c, const float *a, const float *b)
{
    return ats_norm(a, b, c->problem->d_v);
}

static double norm_resid(const ats_cell *c, const float *a, const float *b)
{
    if (c->gram != NULL) return ats_norm_gram(c->gram, a, b, c->problem->d_v);
    if (c->w_o == NULL) return (double)NAN;
    return ats_norm_projected(c->w_o, c->d_model, a, b, c->problem->d_v);
}

/* a / b, undefined where b is 0. */
static double ratio(double a, double b) { return b > 0 ? a / b : (double)NAN; }

/* <a, o> / |o|^2 */
static double share(const ats_cell *c, const float *a, const float *o)
{
    const double square = ats_dot(o, o, c->problem->d_v);
    return ratio(a != NULL ? ats_dot(a, o, c->problem->d_v) : 0.0, square);
}

/* 0 where the variant's row is defined, else NaN: added to what an undefined row may leave. */
static double undefined(const ats_cell *c) { return 0.0 * ats_cell_lse(c, c->route); }

static double output_cosine(const ats_cell *c)
{
    const float *o = output_of(c, c->base), *p = output_of(c, c->route);
    const double cosine =
        ratio(ats_dot(o, p, c->problem->d_v), norm(c, o, NULL) * norm(c, p, NULL));
    /* the quotient of rounded numbers may leave the range by an ulp */
    return cosine > 1 ? 1.0 : cosine < -1 ? -1.0 : cosine + undefined(c);
}

static double output_change(const ats_cell *c)
{
    const float *o = output_of(c, c->base);
    return ratio(norm(c, output_of(c, c->route), o), norm(c, o, NULL)) + undefined(c);
}

static double output_norm_ratio(const ats_cell *c)
{
    return ratio(norm(c, output_of(c, c->route), NULL), norm(c, output_of(c, c->base), NULL)) +
           undefined(c);
}

static double output_norm(const ats_cell *c)
{
    return norm(c, output_of(c, c->route), NULL) + undefined(c);
}

static const float *delta_of(const ats_cell *c)
{
    return c->pair->delta + (c->row * ATS_N_PARTS + c->part) * c->problem->d_v;
}

static double delta_norm(const ats_cell *c) { return norm(c, delta_of(c), NULL) + undefined(c); }

static double delta_share(const ats_cell *c)
{
    return share(c, delta_of(c), output_of(c, c->base)) + undefined(c);
}

static double contribution_norm(const ats_cell *c)
{
    if (ats_cell_absent(c)) return (double)NAN;
    return norm(c, ats_cell_span_output(c, false), NULL) + undefined(c);
}

static double contribution_share(const ats_cell *c)
{
    if (ats_cell_absent(c)) return (double)NAN;
    return share(c, ats_cell_span_output(c, false), output_of(c, c->route)) + undefined(c);
}

static double contribution_change(const ats_cell *c)
{
    if (ats_cell_absent(c)) return (double)NAN;
    return norm(c, ats_cell_span_output(c, false), ats_cell_span_output(c, true)) + undefined(c);
}

static double cancellation(const ats_cell *c)
{
    if (ats_cell_absent(c)) return (double)NAN;
    if (c->span != ATS_SPAN_INSERTED)
        return ratio(norm(c, ats_cell_span_output(c, false), NULL),
                     c->route->region_abs[ats_cell_region(c)]);
    if (c->pair == NULL) return (double)NAN;
    return ratio(norm(c, ats_cell_span_output(c, false), NULL), c->pair->inserted_abs[c->row]);
}

static double topk_contribution_index(const ats_cell *c)
{
    return (double)c->route->topc_index[c->row * c->problem->top_k + c->part];
}

static double topk_contribution_weight(const ats_cell *c)
{
    return c->route->topc_weight[c->row * c->problem->top_k + c->part];
}

static double topk_contribution_norm(const ats_cell *c)
{
    return c->route->topc_norm[c->row * c->problem->top_k + c->part];
}

static double output_change_resid(const ats_cell *c)
{
    const float *o = output_of(c, c->base);
    return ratio(norm_resid(c, output_of(c, c->route), o), norm_resid(c, o, NULL)) + undefined(c);
}

static double output_norm_resid(const ats_cell *c)
{
    return norm_resid(c, output_of(c, c->route), NULL) + undefined(c);
}

static double delta_norm_resid(const ats_cell *c)
{
    return norm_resid(c, delta_of(c), NULL) + undefined(c);
}

static double contribution_norm_resid(const ats_cell *c)
{
    if (ats_cell_absent(c)) return (double)NAN;
    return norm_resid(c, ats_cell_span_output(c, false), NULL) + undefined(c);
}

static double contribution_change_resid(const ats_cell *c)
{
    if (ats_cell_absent(c)) return (double)NAN;
    return norm_resid(c, ats_cell_span_output(c, false), ats_cell_span_output(c, true)) +
           undefined(c);
}

/* <(a - b) W_O, r> */
static double along(const ats_cell *c, const float *a, const float *b)
{
    if (c->readout_row == NULL && (c->w_o == NULL || c->readout == NULL)) return (double)NAN;
    double sum = 0;
    for (int64_t i = 0; i < c->problem->d_v; i++) {
        const double x = (a != NULL ? (double)a[i] : 0.0) - (b != NULL ? (double)b[i] : 0.0);
        sum +=
            x * (c->readout_row != NULL ? c->readout_row[i]
                                        : ats_dot(c->w_o + i * c->d_model, c->readout, c->d_model));
    }
    return sum;
}

static double readout(const ats_cell *c)
{
    if (ats_cell_absent(c)) return (double)NAN;
    return along(c, ats_cell_span_output(c, false), NULL) + undefined(c);
}

static double readout_change(const ats_cell *c)
{
    if (ats_cell_absent(c)) return (double)NAN;
    return along(c, ats_cell_span_output(c, false), ats_cell_span_output(c, true)) + undefined(c);
}

static double contribution(const ats_cell *c)
{
    if (ats_cell_absent(c) || c->part >= c->problem->d_v) return (double)NAN;
    const float *x = ats_cell_span_output(c, false);
    return (x != NULL ? (double)x[c->part] : 0.0) + undefined(c);
}

const ats_metric ats_metric_output_cosine = {
    .name = "output_cosine",
    .unit = "1",
    .long_name = "direction kept by the output",
    .definition = "cos(o, o'); undefined where either is 0",
    .better = ATS_BETTER_MORE,
    .value = output_cosine,
};

const ats_metric ats_metric_output_change = {
    .name = "output_change",
    .unit = "1",
    .long_name = "relative change of the head's output",
    .definition = "|o' - o| / |o|",
    .better = ATS_BETTER_LESS,
    .value = output_change,
};

const ats_metric ats_metric_output_norm_ratio = {
    .name = "output_norm_ratio",
    .unit = "1",
    .long_name = "ratio of output norms",
    .definition = "|o'| / |o|",
    .value = output_norm_ratio,
};

const ats_metric ats_metric_output_norm = {
    .name = "output_norm",
    .unit = "1",
    .long_name = "norm of the head's output",
    .definition = "|o'|, o' = sum w' v'",
    .has_base = true,
    .value = output_norm,
};

const ats_metric ats_metric_delta_norm = {
    .name = "delta_norm",
    .shape = ATS_SHAPE_PART,
    .unit = "1",
    .long_name = "norm of a part of the output change",
    .definition = "norms of the five vectors that sum to o' - o; removal: -sum_R w v; intrusion: "
                  "sum_I w' v'; dilution: (B/A - 1) sum_S w vbar; reroute: sum_S (w' - (B/A) w) "
                  "vbar; payload: sum_S (w + w')/2 (v' - v); A = sum_S w, B = sum_S w' (null route "
                  "in both), vbar = (v + v')/2",
    .better = ATS_BETTER_LESS,
    .value = delta_norm,
};

const ats_metric ats_metric_delta_share = {
    .name = "delta_share",
    .shape = ATS_SHAPE_PART,
    .unit = "1",
    .long_name = "a part of the output change along the base output",
    .definition = "<part, o> / |o|^2",
    .value = delta_share,
};

const ats_metric ats_metric_contribution_norm = {
    .name = "contribution_norm",
    .shape = ATS_SHAPE_SPAN,
    .unit = "1",
    .long_name = "norm of what the span brings back",
    .definition = "|c'|, c' = sum over the span of w' v'",
    .has_base = true,
    .value = contribution_norm,
};

const ats_metric ats_metric_contribution_share = {
    .name = "contribution_share",
    .shape = ATS_SHAPE_SPAN,
    .unit = "1",
    .long_name = "share of the output that the span brings back",
    .definition = "<c', o'> / |o'|^2; sums to 1 over disjoint spans that cover all keys",
    .has_base = true,
    .value = contribution_share,
};

const ats_metric ats_metric_contribution_change = {
    .name = "contribution_change",
    .shape = ATS_SHAPE_SPAN,
    .unit = "1",
    .long_name = "change of what the span brings back",
    .definition = "|c' - c|",
    .better = ATS_BETTER_LESS,
    .value = contribution_change,
};

const ats_metric ats_metric_cancellation = {
    .name = "cancellation",
    .shape = ATS_SHAPE_SPAN,
    .unit = "1",
    .long_name = "how much of the span's payload survives its own sum",
    .definition = "|sum c_i| / sum |c_i|; near 0 the weights say little about the output",
    .has_base = true,
    .value = cancellation,
};

const ats_metric ats_metric_topk_contribution_index = {
    .name = "topk_contribution_index",
    .shape = ATS_SHAPE_TOP,
    .unit = "1",
    .long_name = "base indices of the largest contributions",
    .definition = "keys of largest |w'_i v'_i| first; coded as topk_index",
    .has_base = true,
    .integer = true,
    .value = topk_contribution_index,
    .fill = -1,
};

const ats_metric ats_metric_topk_contribution_weight = {
    .name = "topk_contribution_weight",
    .shape = ATS_SHAPE_TOP,
    .unit = "1",
    .long_name = "weights of the largest contributions",
    .definition = "w' of the keys of topk_contribution_index",
    .has_base = true,
    .value = topk_contribution_weight,
};

const ats_metric ats_metric_topk_contribution_norm = {
    .name = "topk_contribution_norm",
    .shape = ATS_SHAPE_TOP,
    .unit = "1",
    .long_name = "norms of the largest contributions",
    .definition = "|w' v'| of the keys of topk_contribution_index",
    .has_base = true,
    .value = topk_contribution_norm,
};

const ats_metric ats_metric_output_change_resid = {
    .name = "output_change_resid",
    .needs = ATS_NEEDS_W_O,
    .unit = "1",
    .long_name = "relative change of the head's write to the residual stream",
    .definition = "|(o' - o) W_O| / |o W_O|",
    .better = ATS_BETTER_LESS,
    .value = output_change_resid,
};

const ats_metric ats_metric_output_norm_resid = {
    .name = "output_norm_resid",
    .needs = ATS_NEEDS_W_O,
    .unit = "1",
    .long_name = "norm of the head's write to the residual stream",
    .definition = "|o' W_O|",
    .has_base = true,
    .value = output_norm_resid,
};

const ats_metric ats_metric_delta_norm_resid = {
    .name = "delta_norm_resid",
    .shape = ATS_SHAPE_PART,
    .needs = ATS_NEEDS_W_O,
    .unit = "1",
    .long_name = "norm of a part of the change of the residual write",
    .definition = "|part W_O|, parts as in delta_norm",
    .better = ATS_BETTER_LESS,
    .value = delta_norm_resid,
};

const ats_metric ats_metric_contribution_norm_resid = {
    .name = "contribution_norm_resid",
    .shape = ATS_SHAPE_SPAN,
    .needs = ATS_NEEDS_W_O,
    .unit = "1",
    .long_name = "norm of what the span writes to the residual stream",
    .definition = "|c' W_O|; comparable across heads and layers",
    .has_base = true,
    .value = contribution_norm_resid,
};

const ats_metric ats_metric_contribution_change_resid = {
    .name = "contribution_change_resid",
    .shape = ATS_SHAPE_SPAN,
    .needs = ATS_NEEDS_W_O,
    .unit = "1",
    .long_name = "change of what the span writes to the residual stream",
    .definition = "|(c' - c) W_O|",
    .better = ATS_BETTER_LESS,
    .value = contribution_change_resid,
};

const ats_metric ats_metric_readout = {
    .name = "readout",
    .shape = ATS_SHAPE_READOUT,
    .needs = ATS_NEEDS_READOUT,
    .unit = "1",
    .long_name = "the span's contribution along a readout direction",
    .definition = "<c' W_O, r> for each stored direction r",
    .has_base = true,
    .value = readout,
};

const ats_metric ats_metric_readout_change = {
    .name = "readout_change",
    .shape = ATS_SHAPE_READOUT,
    .needs = ATS_NEEDS_READOUT,
    .unit = "1",
    .long_name = "change of the contribution along a readout direction",
    .definition = "<(c' - c) W_O, r>",
    .value = readout_change,
};

const ats_metric ats_metric_contribution = {
    .name = "contribution",
    .shape = ATS_SHAPE_VECTOR,
    .unit = "1",
    .long_name = "what the span brings back, as a vector",
    .definition = "c' = sum over the span of w' v'; written with `vectors: true`",
    .has_base = true,
    .value = contribution,
};
