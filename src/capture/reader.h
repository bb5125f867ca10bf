/* What the reader's files share: the open file, the arena, group names. Private to capture/. */
#ifndef ATS_CAPTURE_READER_H
#define ATS_CAPTURE_READER_H

#include "base/arena.h"
#include "capture/capture.h"
#include "h5/attr.h"

struct ats_capture_file {
    ats_capture capture; /* what the caller sees */
    ats_h5_file h5;
    ats_arena arena;                  /* everything the capture points to */
    const char *const *sample_groups; /* [n_samples], "/samples/<number>" */
};

enum {
    ATS_MAX_HEADS = 1 << 16,
    ATS_MAX_WIDTH = 1 << 16 /* of q, k, v rows, elements */
};

/* "<parent>/<name>" in the arena. */
ATS_MUST_CHECK ats_code ats_capture_path(struct ats_capture_file *file, const char *parent,
                                         const char *name, const char **out, ats_err *err);
/* Groups of `parent` whose names are plain numbers, ascending by number. */
ATS_MUST_CHECK ats_code ats_capture_numbered(struct ats_capture_file *file, const char *parent,
                                             const int64_t **numbers, const char *const **paths,
                                             int64_t *count, ats_err *err);
/* A float tensor of exactly this shape, widened to float32; every number finite. Stored as float32,
 * float64, real float16 or bfloat16, or uint16 words with storage_dtype. NULL when optional and
 * absent. */
ATS_MUST_CHECK ats_code ats_capture_floats(struct ats_capture_file *file, const char *parent,
                                           const char *name, bool optional, int rank,
                                           const int64_t *extent, const char *axes,
                                           const float **out, ats_err *err);
/* Optional logits [n]: as above, and -inf, which is the logit of nothing. */
ATS_MUST_CHECK ats_code ats_capture_logits(struct ats_capture_file *file, const char *parent,
                                           const char *name, int64_t n, const char *axes,
                                           const float **out, ats_err *err);
/* An integer dataset [n] in [low, high] as int64. NULL when optional and absent. n -1: any length,
 * written back. */
ATS_MUST_CHECK ats_code ats_capture_integers(struct ats_capture_file *file, const char *parent,
                                             const char *name, bool optional, int64_t *n,
                                             int64_t low, int64_t high, const int64_t **out,
                                             ats_err *err);
/* Texts [n], valid UTF-8 when strict; n -1: any length, written back. */
ATS_MUST_CHECK ats_code ats_capture_texts(struct ats_capture_file *file, const char *parent,
                                          const char *name, bool optional, bool strict, int64_t *n,
                                          const char *const **out, ats_err *err);
/* A text attribute, valid UTF-8; absent: "" when optional. */
ATS_MUST_CHECK ats_code ats_capture_text(struct ats_capture_file *file, const char *object,
                                         const char *name, bool optional, const char **out,
                                         ats_err *err);
/* An integer attribute in [low, high]. */
ATS_MUST_CHECK ats_code ats_capture_integer(struct ats_capture_file *file, const char *object,
                                            const char *name, int64_t low, int64_t high,
                                            int64_t *out, ats_err *err);

ATS_MUST_CHECK ats_code ats_capture_read_layers(struct ats_capture_file *file, ats_err *err);
ATS_MUST_CHECK ats_code ats_capture_read_samples(struct ats_capture_file *file, ats_err *err);

/* Which storage a tensor of 16 or 32 bit floats has; refuses everything else by a sentence that
 * says what to state or convert. */
ATS_MUST_CHECK ats_code ats_capture_dtype(struct ats_capture_file *file,
                                          const ats_h5_dataset *dataset, ats_dtype *out,
                                          ats_err *err);
/* Shapes and types of every tensor of one sample and layer, without reading them. */
ATS_MUST_CHECK ats_code ats_capture_check_tensors(struct ats_capture_file *file,
                                                  const char *sample_group,
                                                  const ats_sample *sample, const ats_layer *layer,
                                                  ats_err *err);
/* Non-finite numbers that a probe can see, and probes that see nothing; k and v hold so many key
 * heads, and only those of them are scanned that are suspect: the rest is known to be finite. */
ATS_MUST_CHECK ats_code ats_capture_check_visible(const ats_capture *capture,
                                                  const ats_layer *layer, const ats_sample *sample,
                                                  const ats_attention *attention, int64_t kv_heads,
                                                  bool suspect_k, bool suspect_v, ats_err *err);
/* The segment of a probe: its own token's, or without one that of the last key at or before it. */
int32_t ats_capture_probe_segment(const ats_sample *sample, int64_t probe);
/* XXH128 over the file's bytes, in hex. */
ATS_MUST_CHECK ats_code ats_capture_hash(const char *path, char out[33], ats_err *err);
bool ats_utf8_valid(const char *text);

#endif
