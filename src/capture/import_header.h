/* The header of an import: a YAML document that says what tensor files cannot (scale, rotary
 * embedding, masks, spans, probes). Field tables read it; docs/import.md is their reference.
 * Private to capture/. Ownership: everything lives in the reader's arena. */
#ifndef ATS_CAPTURE_IMPORT_HEADER_H
#define ATS_CAPTURE_IMPORT_HEADER_H

#include "base/rope_scaling.h"
#include "capture/capture.h"
#include "yaml/field.h"

enum { ATS_IMPORT_AXES = 8, ATS_IMPORT_NOT_GIVEN = -2 };

typedef struct ats_import_ints {
    int64_t count; /* 0: not given */
    const int64_t *items;
} ats_import_ints;

typedef struct ats_import_rope {
    const char *layout; /* "half", "interleaved"; NULL: no rope section */
    const char *type;   /* also "stored": inverse frequencies come as a tensor */
    const char *magnitude, *softmax_mscale; /* NULL: not stated */
    bool rotated, dynamic, truncate;
    int64_t rotary_dim; /* 0: not given */
    double partial_rotary_factor;
    double max_position_embeddings, original_max_position_embeddings;
    ats_rope_scaling scaling; /* the numbers as written */
} ats_import_rope;

typedef struct ats_import_layer {
    const ats_node *node;
    ats_import_ints layers;                   /* numbers that this entry describes */
    int64_t n_q_heads, n_kv_heads, d_qk, d_v; /* 0: as the tensors say */
    double scale;                             /* NaN: 1/sqrt(d_qk) */
    double softcap;
    int64_t window, chunk, max_position;
    bool causal;
    const char *positions; /* NULL: not stated */
    ats_import_rope rope;
} ats_import_layer;

typedef struct ats_import_sample {
    const ats_node *node;
    const char *id, *cluster, *variant_of;
    int64_t first_position;
    ats_import_ints tokens, position, segment, base_index;
    ats_strings token_text;
    int64_t n_spans, n_probes;
    ats_span *spans;
    ats_probe *probes; /* position INT64_MIN: that of the key `index` */
} ats_import_sample;

typedef struct ats_import_names {
    const char *q, *k, *v, *keep, *bias, *out, *lse;      /* of a sample and layer */
    const char *sink, *alibi_slope, *w_o, *inv_freq;      /* of a layer */
    const char *tokens, *position, *segment, *base_index; /* of a sample */
    const char *readouts;
} ats_import_names;

typedef enum ats_import_axis {
    ATS_IMPORT_HEAD,
    ATS_IMPORT_TOKEN,
    ATS_IMPORT_DIM,
    ATS_IMPORT_BATCH /* of extent 1 */
} ats_import_axis;

typedef struct ats_import_header {
    const char *path;
    int64_t version;
    const char *model_id, *checkpoint, *weights_hash, *tokenizer_hash, *created;
    int64_t n_axes;
    ats_import_axis axes[ATS_IMPORT_AXES];
    const char *queries, *mask, *words; /* mask, words NULL: not stated */
    ats_import_names names;
    ats_strings readouts;
    int64_t n_layers, n_samples;
    ats_import_layer *layers;
    ats_import_sample *samples;
} ats_import_header;

extern const ats_table ats_import_table, ats_import_layer_table, ats_import_sample_table,
    ats_import_span_table, ats_import_probe_table;

/* Reads and checks the whole document; all its faults come in one report. */
ATS_MUST_CHECK ats_code ats_import_header_read(const char *path, ats_arena *arena,
                                               ats_import_header *out, ats_err *err);
/* The keys as Markdown, for docs/import.md. */
ATS_MUST_CHECK ats_code ats_import_reference(ats_arena *arena, const char **out, ats_err *err);

/* import_lists.c: readers of the CUSTOM fields. */
bool ats_import_read_axes(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_import_read_ints(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_import_read_scale(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_import_read_layers(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_import_read_samples(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_import_read_spans(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_import_read_probes(ats_reader *, const ats_node *, const ats_field *, void *);

/* import_rope.c: layer->contract.rope, scale and max_position from the entry. stored:
 * [stored_pairs] frequencies of the file, or NULL. */
ATS_MUST_CHECK ats_code ats_import_make_rope(const ats_import_layer *entry, ats_arena *arena,
                                             const double *stored, int64_t stored_pairs,
                                             ats_layer *layer, ats_err *err);

#endif
