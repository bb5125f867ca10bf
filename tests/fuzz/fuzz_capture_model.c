/* A capture whose HDF5 is the model (model.h): opened or refused, every tensor loaded or refused,
 * described, and its checksums counted. */
#include <stdio.h>
#include <stdlib.h>

#include "capture/capture.h"
#include "capture/describe.h"
#include "fuzz.h"
#include "memory_file.h"
#include "model.h"

enum {
    KEYS = 6,
    PROBES = 2,
    Q_HEADS = 2,
    KV_HEADS = 1,
    D_QK = 4,
    D_V = 2,
    D_MODEL = 3,
    READOUTS = 2
};

static int floats(const char *path, int rank, const hsize_t *extent)
{
    float x[256];
    for (int i = 0; i < 256; i++) x[i] = (float)(i % 7) / 4 - 0.5f;
    return model_dataset(path, MODEL_F32, rank, extent, x);
}

static void build_layer(void)
{
    static const char *const none = "/layers/0";
    static const double frequencies[] = {1, 0.01};
    model_group("/layers");
    model_group(none);
    model_attr_i64(none, "n_q_heads", Q_HEADS);
    model_attr_i64(none, "n_kv_heads", KV_HEADS);
    model_attr_i64(none, "d_qk", D_QK);
    model_attr_i64(none, "d_v", D_V);
    model_attr_f64(none, "scale", 0.5);
    model_attr_f64(none, "softcap", 0);
    model_attr_i64(none, "window", 0);
    model_attr_i64(none, "chunk", 0);
    model_attr_i64(none, "causal", 1);
    model_attr_text(none, "rope_layout", "half", false);
    model_attr_text(none, "positions", "rope", true);
    model_attr_i64(none, "rope_dynamic", 0);
    model_attr_i64(none, "max_position", 0);
    model_dataset("/layers/0/inv_freq", MODEL_F64, 1, (hsize_t[]){2}, frequencies);
    floats("/layers/0/sink", 1, (hsize_t[]){Q_HEADS});
    floats("/layers/0/w_o", 3, (hsize_t[]){Q_HEADS, D_V, D_MODEL});
}

static void build_sample(void)
{
    static const int32_t tokens[KEYS] = {5, 6, 7, 8, 9, 10}, segment[KEYS] = {0};
    static const int64_t position[KEYS] = {0, 1, 2, 3, 4, 5}, start[] = {1, 3}, stop[] = {3, 4};
    static const int64_t index[PROBES] = {5, -1}, places[PROBES] = {5, 6};
    static const uint8_t keep[PROBES * KEYS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const char *const words[] = {"a", "b", "c", "d", "e", "f"};
    static const char *const names[] = {"gold", "rival"}, *const roles[] = {"target", "competitor"};
    static const char *const asked[] = {"answer", "answer"};
    model_group("/samples");
    model_group("/samples/0");
    model_attr_text("/samples/0", "id", "s0", false);
    model_attr_text("/samples/0", "cluster", "c", true);
    model_attr_i64("/samples/0", "n_keys", KEYS);
    model_dataset("/samples/0/tokens", MODEL_I32, 1, (hsize_t[]){KEYS}, tokens);
    model_dataset("/samples/0/position", MODEL_I64, 1, (hsize_t[]){KEYS}, position);
    model_dataset("/samples/0/segment", MODEL_I32, 1, (hsize_t[]){KEYS}, segment);
    model_texts("/samples/0/token_text", KEYS, words);
    model_group("/samples/0/spans");
    model_texts("/samples/0/spans/name", 2, names);
    model_texts("/samples/0/spans/role", 2, roles);
    model_dataset("/samples/0/spans/start", MODEL_I64, 1, (hsize_t[]){2}, start);
    model_dataset("/samples/0/spans/stop", MODEL_I64, 1, (hsize_t[]){2}, stop);
    model_group("/samples/0/probes");
    model_dataset("/samples/0/probes/index", MODEL_I64, 1, (hsize_t[]){PROBES}, index);
    model_dataset("/samples/0/probes/position", MODEL_I64, 1, (hsize_t[]){PROBES}, places);
    model_texts("/samples/0/probes/role", PROBES, asked);
    model_group("/samples/0/layers");
    model_group("/samples/0/layers/0");
    floats("/samples/0/layers/0/q", 3, (hsize_t[]){Q_HEADS, PROBES, D_QK});
    model_compress(floats("/samples/0/layers/0/k", 3, (hsize_t[]){KV_HEADS, KEYS, D_QK}),
                   (hsize_t[]){1, 4, 4}, true);
    model_dataset("/samples/0/layers/0/v", MODEL_U16, 3, (hsize_t[]){KV_HEADS, KEYS, D_V}, NULL);
    model_attr_text("/samples/0/layers/0/v", "storage_dtype", "bfloat16", false);
    model_compress(
        model_dataset("/samples/0/layers/0/keep", MODEL_U8, 2, (hsize_t[]){PROBES, KEYS}, keep),
        (hsize_t[]){PROBES, KEYS}, false);
    floats("/samples/0/layers/0/bias", 3, (hsize_t[]){1, PROBES, KEYS});
    floats("/samples/0/layers/0/out", 3, (hsize_t[]){Q_HEADS, PROBES, D_V});
    floats("/samples/0/layers/0/lse", 2, (hsize_t[]){Q_HEADS, PROBES});
}

static void build(void)
{
    static const char *const names[READOUTS] = {"yes", "no"};
    model_attr_text("/", "format", "attnstress-capture", false);
    model_attr_i64("/", "format_version", 1);
    model_attr_i64("/", "complete", 1);
    model_attr_text("/", "model_id", "m", true);
    model_attr_text("/", "checkpoint", "c", false);
    model_attr_text("/", "weights_hash", "w", false);
    build_layer();
    model_group("/readouts");
    model_texts("/readouts/names", READOUTS, names);
    floats("/readouts/direction", 2, (hsize_t[]){READOUTS, D_MODEL});
    build_sample();
}

static void load(const ats_capture *capture, int64_t sample, int64_t layer, ats_err *err)
{
    ats_attention attention = {0};
    ats_storage storage;
    if (ats_attention_load(capture, sample, layer, &attention, err) == ATS_E_INTERNAL) abort();
    ats_attention_fini(&attention);
    if (ats_capture_storage(capture, sample, layer, &storage, err) == ATS_E_INTERNAL) abort();
}

static void run(void)
{
    ats_capture *capture = NULL;
    ats_err err = {.code = ATS_OK};
    int64_t total, with;
    char text[64];
    const ats_code rc = ats_capture_open(ATS_FUZZ_PATH, &capture, &err);
    if (rc != ATS_OK) {
        if (err.text[0] == '\0') abort();
        ats_fuzz_refused(err.text);
        return;
    }
    for (int64_t s = 0; s < capture->n_samples && s < 3; s++) {
        for (int64_t l = 0; l < capture->n_layers && l < 3; l++) load(capture, s, l, &err);
        for (int64_t i = 0; i < capture->samples[s].n_spans && i < 4; i++)
            ats_span_excerpt(&capture->samples[s], &capture->samples[s].spans[i], 20, text,
                             sizeof text);
    }
    if (ats_capture_checksums(capture, &total, &with, &err) == ATS_E_INTERNAL) abort();
    ats_capture_close(capture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return model_execute(data, size, build, run);
}
