/* The result file: writer. A few large arrays with dimension scales (docs/results-format.md).
 *
 * The writer makes every variable up front from the metric table, takes one block per
 * (sample, layer), and ends with `complete`; the file carries a temporary name until then.
 * Ownership: the writer owns its file and copies nothing; blocks are only read. One thread. */
#ifndef ATS_REPORT_RESULTS_H
#define ATS_REPORT_RESULTS_H

#include "base/arena.h"
#include "metrics/metric.h"

enum { ATS_TYPE_F64, ATS_TYPE_I64, ATS_TYPE_TEXT, ATS_TYPE_BOOL };

/* A coordinate along one axis ("case", "sample", "layer", "head", "probe"; "span", "part", "k",
 * "readout_direction", "dv"). name == axis: it is the axis's scale; an axis without one gets its
 * indices (or names). Any other name must not be an axis's ("sample_index" and not "sample" along
 * "case"). */
typedef struct ats_coordinate {
    const char *name, *axis;
    int type; /* ATS_TYPE_* */
    const char *unit, *long_name;
    const double *f64; /* [axis size], by type */
    const int64_t *i64;
    const char *const *text;
    const int8_t *flag;
    const char *flag_values; /* "0,1" and CF flag_meanings on integers; NULL: none */
    const char *flag_meanings;
    const char
        *index_of; /* integers that are indices along this axis, -1: none; NULL: they are not */
} ats_coordinate;

typedef struct ats_attribute {
    const char *name;
    int type;
    double f64;
    int64_t i64;
    const char *text;
} ats_attribute;

typedef struct ats_results_shape {
    int64_t n_cases, n_samples, n_layers, n_heads, n_probes, n_spans, n_top, n_readouts, d_v;
    const char *const *span_names; /* [n_spans]; the last four are sink, recent, rest, inserted */
    const char *const *readout_names; /* [n_readouts] */
    bool detail_head; /* cells are means over probes; the probe axis is gone, `worst_probe` is there
                       */
    int64_t n_curves; /* dose curves; 0: the file has none */
    int64_t cases_per_sample; /* 0: n_cases / n_samples; chunks never cross a sample's cases */
} ats_results_shape;

typedef struct ats_results_options {
    const char *compression; /* zstd | deflate | none */
    int level;
    bool vectors;
    int64_t n_metrics;
    const ats_metric *const *metrics; /* those to write */
    int64_t n_coordinates;
    const ats_coordinate *coordinates;
    int64_t n_attributes;
    const ats_attribute *attributes; /* root attributes: suite_hash, backend, ... */
    const char *suite_text;          /* resolved suite, dataset "suite" */
    bool sealed;                     /* a part: the file ends with a seal (h5/seal.h) */
} ats_results_options;

typedef struct ats_results ats_results;

/* Temporary file beside path; fails clearly when the directory cannot be written or is full. */
ATS_MUST_CHECK ats_code ats_results_create(const char *path, const ats_results_shape *shape,
                                           const ats_results_options *options, ats_results **out,
                                           ats_err *err);

/* One metric's numbers for the cases of one sample in one layer: values[case][head][probe][x] with
 * x = span, part, k, ... by the metric's shape; base: one case. NaN where undefined. */
typedef struct ats_block {
    int64_t metric; /* index into options->metrics */
    bool base;
    const float *values;
    const int32_t *integers; /* instead of values for integer metrics */
    const int64_t *counts;   /* instead of values for ATS_BLOCK_UNDEFINED */
} ats_block;

/* Values of ats_block.metric that are no metric, straight from the recorder. */
enum {
    ATS_BLOCK_UNDEFINED = -1,   /* counts[case]: variable `undefined_cells` [case, layer] */
    ATS_BLOCK_WORST_PROBE = -2, /* integers[case][head]: `worst_probe`, with detail_head alone */
    ATS_BLOCK_WORST_VALUE = -3  /* values[case][head]: `worst_log_mass_shift`, likewise */
};

/* More coordinates, at any time before finish: what is only known after the work (status, realised
 * cosine). A scale (name == axis) can only be given to ats_results_create. */
ATS_MUST_CHECK ats_code ats_results_coordinates(ats_results *results,
                                                const ats_coordinate *coordinates, int64_t count,
                                                ats_err *err);

/* Writes blocks for cases [case_start, case_start + n_cases) of sample `sample`, layer index
 * `layer`. All cases of a sample at once is fastest; smaller ascending pieces give the same bytes.
 * n_cases is not looked at for a base block. */
ATS_MUST_CHECK ats_code ats_results_write(ats_results *results, int64_t sample, int64_t layer,
                                          int64_t case_start, int64_t n_cases,
                                          const ats_block *blocks, int64_t n_blocks, ats_err *err);
/* A dose curve's number per curve, layer and head; at any time before finish, each name once. */
typedef struct ats_curve_variable {
    const char *name, *unit, *long_name, *definition;
    const float *values;     /* [n_curves, n_layers, n_heads], NaN: undefined */
    const int32_t *integers; /* instead of values, an ats_censoring; -2147483647: undefined */
} ats_curve_variable;
ATS_MUST_CHECK ats_code ats_results_curves(ats_results *results, const ats_curve_variable *curves,
                                           int64_t count, ats_err *err);

/* A number per case, layer and head that is only known after the work. values: [n_cases, n_layers,
 * n_heads], NaN: undefined. */
ATS_MUST_CHECK ats_code ats_results_cells(ats_results *results, const char *name, const char *unit,
                                          const char *long_name, const char *definition,
                                          const float *values, ats_err *err);

/* Late root attributes (timings are not among them: equal runs give equal bytes), then `complete`
 * and the last that HDF5 has to do; a commit or an abort follows. */
ATS_MUST_CHECK ats_code ats_results_end(ats_results *results, const ats_attribute *attributes,
                                        int64_t n_attributes, ats_err *err);
/* Seal, fsync, rename: without HDF5. Frees. */
ATS_MUST_CHECK ats_code ats_results_commit(ats_results *results, ats_err *err);
/* Both. Frees. */
ATS_MUST_CHECK ats_code ats_results_finish(ats_results *results, const ats_attribute *attributes,
                                           int64_t n_attributes, ats_err *err);
void ats_results_abort(ats_results *results); /* closes and removes the temporary file */

/* Bytes of every variable, uncompressed, by the same layout: for `plan`. */
int64_t ats_results_bytes(const ats_results_shape *shape, const ats_metric *metric, bool base,
                          bool vectors);

/* Reader, for gates, explain, summaries: whole variable by name as double (NaN fill), dims out. */
typedef struct ats_result_file ats_result_file;
ATS_MUST_CHECK ats_code ats_result_open(const char *path, ats_result_file **out, ats_err *err);
/* The same for a file that was opened before and has not changed since. */
ATS_MUST_CHECK ats_code ats_result_open_again(const char *path, ats_result_file **out,
                                              ats_err *err);
void ats_result_close(ats_result_file *file);
typedef struct ats_result_variable {
    int rank;
    int64_t extent[6];
    char axis[6][24];
    double *values; /* free() */
} ats_result_variable;
ATS_MUST_CHECK ats_code ats_result_read(ats_result_file *file, const char *name,
                                        ats_result_variable *out, ats_err *err);
/* Extents and axes alone: values is NULL. */
ATS_MUST_CHECK ats_code ats_result_shape(ats_result_file *file, const char *name,
                                         ats_result_variable *out, ats_err *err);
/* Rows [first, first + count) of the first axis of a float32 or int32 variable, as stored (int32:
 * the bits): for variables too large to hold. out: [count, the other extents]. */
ATS_MUST_CHECK ats_code ats_result_read_rows(ats_result_file *file, const char *name, int64_t first,
                                             int64_t count, float *out, ats_err *err);
bool ats_result_has(const ats_result_file *file, const char *name);
/* Text coordinate or attribute, malloc'd strings released by ats_result_free_texts. */
ATS_MUST_CHECK ats_code ats_result_texts(ats_result_file *file, const char *name, char ***out,
                                         int64_t *count, ats_err *err);
void ats_result_free_texts(char **texts, int64_t count);
ATS_MUST_CHECK ats_code ats_result_attribute(ats_result_file *file, const char *name, char *text,
                                             size_t size, ats_err *err);

/* The dose curves of a result: the axis with its coordinates, and every number.
 * [n] arrays are by curve, [n, n_layers, n_heads] ones by cell; a result without doses has n 0.
 * Ownership: the arena's. */
typedef struct ats_result_curves {
    int64_t n, n_layers, n_heads, n_cases;
    const int64_t *sample; /* [n] index on the sample axis */
    const char *const *id; /* [n] the variants' id without dose and replicate */
    const char *const *perturbation, *const *kind, *const *positions, *const *dose_name; /* [n] */
    const double *doses, *dose_min, *dose_max;                                           /* [n] */
    const int64_t *of_case; /* [n_cases] curve that a case is a point of, -1: none */
    const double *competition_strength, *row_tolerance, *half_dose, *control_half_dose,
        *breakdown_dose, *excess, *excess_over_control, *position_dip, *position_margin_dip,
        *position_lowest;
    const int8_t *half_dose_censored, *control_half_dose_censored, *breakdown_dose_censored;
} ats_result_curves;
ATS_MUST_CHECK ats_code ats_result_curves_read(ats_result_file *file, ats_arena *arena,
                                               ats_result_curves *out, ats_err *err);

#endif
