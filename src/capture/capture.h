/* The capture: stored attention inputs of one checkpoint, samples x layers.
 *
 * Opening reads every small thing (layers, samples, spans, probes, readouts) and checks it;
 * tensors of one sample and layer are loaded on demand. docs/capture-format.md is the format.
 * Ownership: an ats_capture owns all it points to; ats_attention owns its tensors. A capture is
 * read-only after opening; ats_attention_load may be called from one thread at a time. */
#ifndef ATS_CAPTURE_CAPTURE_H
#define ATS_CAPTURE_CAPTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/contract.h"
#include "base/half.h"
#include "base/scratch.h"
#include "base/status.h"

typedef enum ats_positions {
    ATS_POSITIONS_ROPE,
    ATS_POSITIONS_ALIBI,
    ATS_POSITIONS_NONE,
    ATS_POSITIONS_ABSOLUTE
} ats_positions;

typedef struct ats_layer {
    int64_t index; /* the model's layer number: /layers/<index> */
    int64_t n_q_heads, n_kv_heads, d_qk, d_v;
    ats_contract contract; /* temperature 1 */
    ats_positions positions;
    bool rope_dynamic;
    int64_t max_position;
    const float *sink;        /* [n_q_heads] or NULL */
    const float *alibi_slope; /* [n_q_heads] or NULL */
    const float *w_o;         /* [n_q_heads, d_v, d_model] or NULL */
    int64_t d_model;          /* 0 without w_o */
} ats_layer;

typedef struct ats_span {
    const char *name, *role;
    int64_t start, stop; /* key indices, half-open */
} ats_span;

typedef struct ats_probe {
    int64_t index;    /* key index of its own token, -1: none */
    int64_t position; /* tokens */
    const char *role;
} ats_probe;

typedef struct ats_sample {
    const char *id, *cluster;
    const char *variant_of; /* sample id, or NULL */
    int64_t n_keys;
    const int32_t *tokens;         /* [n_keys] */
    const int64_t *position;       /* [n_keys] */
    const int32_t *segment;        /* [n_keys] or NULL */
    const char *const *token_text; /* [n_keys] or NULL */
    const int64_t *base_index;     /* [n_keys] or NULL */
    int64_t n_spans;
    const ats_span *spans;
    int64_t n_probes;
    const ats_probe *probes;
} ats_sample;

typedef struct ats_capture {
    const char *path;
    const char *model_id, *checkpoint, *weights_hash, *tokenizer_hash, *created, *producer;
    char hash[33]; /* XXH128 of the file's bytes, hex */
    int64_t n_layers;
    const ats_layer *layers; /* ascending index */
    int64_t n_samples;
    const ats_sample *samples; /* ascending group number */
    int64_t n_readouts, readout_dim;
    const char *const *readout_names;
    const float *readouts;         /* [n_readouts, readout_dim] or NULL */
    struct ats_capture_file *file; /* the reader's own */
} ats_capture;

/* Tensors of one sample and layer. */
enum { ATS_TENSORS = 7 };

typedef struct ats_attention {
    ats_dtype q_dtype, k_dtype, v_dtype;
    void *q;                  /* [n_q_heads, n_probes, d_qk] */
    int64_t first_kv_head;    /* k and v hold key heads from this one on */
    void *k;                  /* [n_kv_heads - first_kv_head or fewer, n_keys, d_qk] */
    void *v;                  /* [the same, n_keys, d_v] */
    uint8_t *keep;            /* [n_probes, n_keys] or NULL; 1: may attend */
    float *bias;              /* [bias_heads, n_probes, n_keys] or NULL; logit units */
    int64_t bias_heads;       /* 1 or n_q_heads */
    float *out;               /* [n_q_heads, n_probes, d_v] or NULL */
    float *lse;               /* [n_q_heads, n_probes] or NULL; nats */
    size_t bytes;             /* in memory, of all of the above */
    ats_scratch *scratch;     /* k and v lie there, and are announced to it; NULL: in memory */
    size_t room[ATS_TENSORS]; /* bytes of memory behind q, k, v, keep, bias, out, lse, if loaded */
} ats_attention;

/* Opens and checks everything but the tensors. Errors name file, dataset path and reason. */
ATS_MUST_CHECK ats_code ats_capture_open(const char *path, ats_capture **out, ats_err *err);
void ats_capture_close(ats_capture *capture);
/* Loads the tensors of samples[sample], layers[layer] (indices, not ids), inflating chunks on
 * all threads; a non-finite number at a key that some probe may see, or a probe that sees no
 * key and has no sink, is an error naming tensor, row and column. */
ATS_MUST_CHECK ats_code ats_attention_load(const ats_capture *capture, int64_t sample,
                                           int64_t layer, ats_attention *out, ats_err *err);
/* The same with k and v of key heads [first, first + count) alone: only their chunks are read. */
ATS_MUST_CHECK ats_code ats_attention_load_heads(const ats_capture *capture, int64_t sample,
                                                 int64_t layer, int64_t first, int64_t count,
                                                 ats_attention *out, ats_err *err);
/* The same in the memory of `spare` where that fits; leaves `spare` empty. stream: where k and v go
 * instead of memory; NULL: they do not. */
typedef struct ats_stream {
    const char *folder; /* of the file */
    int64_t resident;   /* bytes of k and v that stay in memory, see base/scratch.h */
} ats_stream;
ATS_MUST_CHECK ats_code ats_attention_reload(const ats_capture *capture, int64_t sample,
                                             int64_t layer, int64_t first, int64_t count,
                                             const ats_stream *stream, ats_attention *spare,
                                             ats_attention *out, ats_err *err);
void ats_attention_fini(ats_attention *attention);
/* From now on loading takes the mutex by itself, around its calls of HDF5 alone, so that others who
 * hold it may use HDF5 meanwhile. NULL: no more. */
void ats_capture_share(const ats_capture *capture, pthread_mutex_t *hdf5);

/* Tensors (q, k, v, keep, bias, out, lse) of all samples and layers, and how many of them have a
 * checksum over their stored numbers. Looks at the head of every chunk. */
ATS_MUST_CHECK ats_code ats_capture_checksums(const ats_capture *capture, int64_t *total,
                                              int64_t *with, ats_err *err);

/* May probe row (position pos_q, own key index or -1) of this sample see key i of this layer:
 * causality, window, chunk, segment and keep mask together. */
bool ats_capture_visible(const ats_layer *layer, const ats_sample *sample,
                         const ats_attention *attention, int64_t probe, int64_t key);

#endif
