/* What the files of the results writer share. Internal to report/. */
#ifndef ATS_REPORT_RESULTS_PRIVATE_H
#define ATS_REPORT_RESULTS_PRIVATE_H

#include "h5/chunks.h"
#include "report/results.h"

#define ATS_RESULTS_FORMAT "attnstress-result"
enum { ATS_RESULTS_VERSION = 1 };

/* The axes, in the order that their scales are made in. */
typedef enum ats_results_axis {
    ATS_AXIS_CASE,
    ATS_AXIS_SAMPLE,
    ATS_AXIS_LAYER,
    ATS_AXIS_HEAD,
    ATS_AXIS_PROBE,
    ATS_AXIS_SPAN,
    ATS_AXIS_PART,
    ATS_AXIS_K,
    ATS_AXIS_READOUT,
    ATS_AXIS_DV,
    ATS_AXIS_CURVE,
    ATS_N_AXES
} ats_results_axis;

/* Axes of one variable, outermost first. */
typedef struct ats_results_dims {
    int rank;
    ats_results_axis axis[ATS_H5_MAX_RANK];
    int64_t extent[ATS_H5_MAX_RANK];
} ats_results_dims;

/* A variable of numbers [case or sample, layer, ...]. Pieces smaller than a row of chunks wait in
 * `rows` until the row is full. */
typedef struct ats_results_variable {
    ats_h5_dataset dataset;      /* zeroed: not written */
    int64_t cell;                /* elements of one case and layer */
    float *rows;                 /* [chunk cases, cell], also of int32; NULL: nothing waits */
    int64_t layer, first, count; /* what waits */
} ats_results_variable;

/* A box of a variable on its way to the file. */
typedef struct ats_results_box {
    const ats_h5_dataset *dataset;
    int64_t start[ATS_H5_MAX_RANK], extent[ATS_H5_MAX_RANK];
    const float *numbers; /* [extent], also of int32 */
} ats_results_box;

enum { ATS_RESULTS_QUEUE = 512 /* boxes */ };

struct ats_results {
    ats_arena arena;
    ats_h5_file file;
    ats_results_shape shape; /* names are copied nowhere: used in create alone */
    int64_t n_metrics;
    const ats_metric *const *metrics;
    ats_h5_dataset scales[ATS_N_AXES]; /* zeroed where the axis is empty */
    ats_results_variable *variables;   /* [n_metrics] */
    ats_results_variable *base;        /* [n_metrics] */
    int32_t *undefined;                /* [case, layer] */
    int32_t *worst_probe;              /* [case, layer, head] with detail_head */
    float *worst_value;                /* likewise */
    int compression, level;
    int64_t n_queued;
    ats_results_box *queue; /* [ATS_RESULTS_QUEUE] */
    ats_h5_box *boxes;      /* the same, as h5/ wants them */
};

struct ats_result_file {
    ats_h5_file file;
};

const char *ats_results_axis_name(ats_results_axis axis);
int64_t ats_results_axis_size(const ats_results_shape *shape, ats_results_axis axis);
ats_results_dims ats_results_dims_of(const ats_results_shape *shape, const ats_metric *metric,
                                     bool base);
/* Is it in the file at all? */
bool ats_results_writes(const ats_results_shape *shape, const ats_metric *metric, bool base,
                        bool vectors);
/* Chunk of a variable: all of it is one layer's, the cases one sample's. */
void ats_results_chunk(const ats_results_shape *shape, const ats_results_dims *dims, bool base,
                       int64_t *chunk);
/* Every scale: the caller's coordinate of that name, else names, else indices. */
ATS_MUST_CHECK ats_code ats_results_scales(ats_results *results, const ats_coordinate *coordinates,
                                           int64_t count, bool vectors, ats_err *err);
/* Attaches the scales of dims and writes units, long_name, definition. */
ATS_MUST_CHECK ats_code ats_results_describe(const ats_results *results,
                                             const ats_h5_dataset *dataset,
                                             const ats_results_dims *dims, const char *units,
                                             const char *long_name, const char *definition,
                                             ats_err *err);
ATS_MUST_CHECK ats_code ats_results_attributes(const ats_results *results,
                                               const ats_attribute *attributes, int64_t count,
                                               ats_err *err);
/* A variable [case or curve, layer, ...] kept in memory until the end, with its words. rank: axes
 * after the first are layer and head. */
ATS_MUST_CHECK ats_code ats_results_put_kept(const ats_results *results, const char *name,
                                             const ats_results_dims *dims, bool integer,
                                             const void *data, const char *units,
                                             const char *long_name, const char *definition,
                                             ats_err *err);
#endif
