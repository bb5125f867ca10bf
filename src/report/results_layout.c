#include "h5/chunks.h"
#include "report/results_private.h"

static const char *const axis_names[ATS_N_AXES] = {
    "case", "sample", "layer", "head", "probe", "span", "part", "k", "readout_direction",
    "dv",   "curve"};

const char *ats_results_axis_name(ats_results_axis axis) { return axis_names[axis]; }

int64_t ats_results_axis_size(const ats_results_shape *shape, ats_results_axis axis)
{
    const int64_t sizes[ATS_N_AXES] = {shape->n_cases, shape->n_samples, shape->n_layers,
                                       shape->n_heads, shape->n_probes,  shape->n_spans,
                                       ATS_N_PARTS,    shape->n_top,     shape->n_readouts,
                                       shape->d_v,     shape->n_curves};
    return sizes[axis];
}

static void add_axis(const ats_results_shape *shape, ats_results_dims *dims, ats_results_axis axis)
{
    dims->axis[dims->rank] = axis;
    dims->extent[dims->rank++] = ats_results_axis_size(shape, axis);
}

ats_results_dims ats_results_dims_of(const ats_results_shape *shape, const ats_metric *metric,
                                     bool base)
{
    static const struct {
        int count;
        ats_results_axis axis[2];
    } inner[] = {[ATS_SHAPE_SCALAR] = {0, {ATS_AXIS_CASE}},
                 [ATS_SHAPE_SPAN] = {1, {ATS_AXIS_SPAN}},
                 [ATS_SHAPE_PART] = {1, {ATS_AXIS_PART}},
                 [ATS_SHAPE_TOP] = {1, {ATS_AXIS_K}},
                 [ATS_SHAPE_READOUT] = {2, {ATS_AXIS_READOUT, ATS_AXIS_SPAN}},
                 [ATS_SHAPE_VECTOR] = {2, {ATS_AXIS_SPAN, ATS_AXIS_DV}}};
    ats_results_dims dims = {.rank = 0};
    add_axis(shape, &dims, base ? ATS_AXIS_SAMPLE : ATS_AXIS_CASE);
    add_axis(shape, &dims, ATS_AXIS_LAYER);
    add_axis(shape, &dims, ATS_AXIS_HEAD);
    if (!shape->detail_head) add_axis(shape, &dims, ATS_AXIS_PROBE);
    for (int i = 0; i < inner[metric->shape].count; i++)
        add_axis(shape, &dims, inner[metric->shape].axis[i]);
    return dims;
}

bool ats_results_writes(const ats_results_shape *shape, const ats_metric *metric, bool base,
                        bool vectors)
{
    if (metric->shape == ATS_SHAPE_VECTOR && !vectors) return false;
    if (metric->shape == ATS_SHAPE_READOUT && shape->n_readouts == 0) return false;
    return base ? metric->has_base || metric->base_only : !metric->base_only;
}

int64_t ats_results_bytes(const ats_results_shape *shape, const ats_metric *metric, bool base,
                          bool vectors)
{
    if (!ats_results_writes(shape, metric, base, vectors)) return 0;
    const ats_results_dims dims = ats_results_dims_of(shape, metric, base);
    int64_t bytes = (int64_t)sizeof(float);
    for (int i = 0; i < dims.rank; i++)
        if (__builtin_mul_overflow(bytes, dims.extent[i], &bytes)) return INT64_MAX;
    return bytes;
}

/* Cases that share a chunk: a divisor of one sample's cases, so that no chunk waits for another
 * sample. Where divisors are few (a prime) all of them. */
static int64_t chunk_cases(int64_t cases, int64_t cell_bytes)
{
    enum { WANTED = 128 << 10 };
    int64_t best = 1;
    for (int64_t d = 1; d <= cases && d * cell_bytes <= WANTED; d++)
        if (cases % d == 0) best = d;
    return best * cell_bytes * 8 < WANTED ? cases : best;
}

void ats_results_chunk(const ats_results_shape *shape, const ats_results_dims *dims, bool base,
                       int64_t *chunk)
{
    enum { LARGEST = 1 << 20 };
    int64_t bytes = (int64_t)sizeof(float);
    for (int i = 2; i < dims->rank; i++) bytes *= chunk[i] = dims->extent[i];
    int64_t cases = shape->cases_per_sample;
    if (cases <= 0)
        cases = shape->n_cases % shape->n_samples == 0 ? shape->n_cases / shape->n_samples
                                                       : shape->n_cases;
    if (dims->axis[0] == ATS_AXIS_CURVE) cases = shape->n_curves / shape->n_samples;
    chunk[0] = base ? 1 : chunk_cases(cases, bytes);
    chunk[1] = 1;
    bytes *= chunk[0];
    for (int i = 2; i < dims->rank && bytes > LARGEST; i++) {
        const int64_t one = bytes / chunk[i];
        chunk[i] = one >= LARGEST ? 1 : LARGEST / one;
        bytes = one * chunk[i];
    }
}
