/* One spoiled file per way of being wrong: refused at opening by path and reason. */
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/model.h"
#include "h5/scratch.h"
#include "support/check.h"

typedef enum spoil { REMOVE, UNSET, INTEGER, REAL, WORD } spoil;

typedef struct fault {
    spoil how;
    const char *object, *attribute;
    double number;
    const char *word;
    const char *says[3]; /* besides the file's name */
} fault;

#define L3 "/layers/3"
#define T3 "/samples/0/layers/3"
static const fault faults[] = {
    {UNSET, "/", "format", 0, "", {"not a capture", "attnstress-capture", "format"}},
    {WORD, "/", "format", 0, "other", {"not a capture", "\"other\"", ""}},
    {INTEGER, "/", "format_version", 2, "", {"format_version 2", "version 1", "install a newer"}},
    {UNSET, "/", "complete", 0, "", {"not complete", "complete = 1", "written last"}},
    {INTEGER, "/", "complete", 0, "", {"not complete", "", ""}},
    {UNSET, "/", "model_id", 0, "", {"\"model_id\" is missing", "", ""}},
    {REMOVE, "/layers", NULL, 0, "", {"/layers", "missing", ""}},
    {REMOVE, "/samples", NULL, 0, "", {"/samples", "missing", ""}},
    {UNSET, L3, "scale", 0, "", {L3, "\"scale\" is missing", ""}},
    {REAL, L3, "scale", INFINITY, "", {L3, "scale is inf", "finite"}},
    {REAL, L3, "scale", NAN, "", {L3, "scale is", "finite"}},
    {REAL, L3, "softcap", -1, "", {L3, "softcap is -1", "positive, or 0"}},
    {REAL, L3, "softcap", NAN, "", {L3, "softcap", "positive, or 0"}},
    {INTEGER, L3, "window", -1, "", {L3, "\"window\" is -1", ""}},
    {INTEGER, L3, "chunk", -5, "", {L3, "\"chunk\" is -5", ""}},
    {REAL, L3, "window", 8, "", {L3, "\"window\"", "integer"}},
    {INTEGER, L3, "causal", 2, "", {L3, "\"causal\" is 2", ""}},
    {INTEGER, L3, "n_kv_heads", 3, "", {L3, "n_q_heads = 4", "multiple of n_kv_heads = 3"}},
    {INTEGER, L3, "n_kv_heads", 0, "", {L3, "\"n_kv_heads\" is 0", ""}},
    {INTEGER, L3, "n_q_heads", 8, "", {L3 "/sink", "[4]", "[8]"}},
    {INTEGER, L3, "d_qk", 4, "", {L3 "/inv_freq", "3 frequencies", ""}},
    {INTEGER, L3, "d_qk", 9e18, "", {L3, "\"d_qk\"", ""}},
    {WORD, L3, "rope_layout", 0, "neox", {L3, "\"neox\"", "interleaved"}},
    {WORD, L3, "rope_layout", 0, "none", {L3, "inv_freq", "\"half\""}},
    {WORD, L3, "positions", 0, "learned", {L3, "\"learned\"", "alibi"}},
    {WORD, L3, "positions", 0, "none", {L3, "contradict", ""}},
    {INTEGER, L3, "positions", 1, "", {L3, "\"positions\"", "text"}},
    {REMOVE, L3 "/inv_freq", NULL, 0, "", {L3, "rope_layout", "inv_freq"}},
    {REMOVE, "/layers/10/alibi_slope", NULL, 0, "", {"/layers/10", "alibi_slope is missing", ""}},
    {UNSET, "/samples/0", "id", 0, "", {"/samples/0", "\"id\" is missing", ""}},
    {WORD, "/samples/1", "id", 0, "", {"/samples/1", "empty id", ""}},
    {WORD, "/samples/1", "id", 0, "alpha", {"/samples/0", "/samples/1", "\"alpha\""}},
    {WORD, "/samples/1", "id", 0, "\xff\xfe", {"/samples/1", "\"id\"", "UTF-8"}},
    {WORD, "/samples/2", "variant_of", 0, "zeta", {"/samples/2", "\"zeta\"", ""}},
    {WORD, "/samples/2", "variant_of", 0, "alpha+1", {"/samples/2", "no other sample", ""}},
    {WORD, "/samples/2", "variant_of", 0, "beta/2 \xe2\x82\xac", {"base_index[7]", "7 keys", ""}},
    {REMOVE, "/samples/2/base_index", NULL, 0, "", {"/samples/2", "base_index", ""}},
    {INTEGER, "/samples/0", "n_keys", 19, "", {"/samples/0/tokens", "[20]", "[19]"}},
    {INTEGER, "/samples/0", "n_keys", 0, "", {"\"n_keys\" is 0", "", ""}},
    {INTEGER, "/samples/0", "n_keys", 1e15, "", {"\"n_keys\"", "", ""}},
    {REMOVE, "/samples/0/tokens", NULL, 0, "", {"/samples/0/tokens", "missing", ""}},
    {REMOVE, "/samples/0/probes", NULL, 0, "", {"/samples/0/probes", "missing", ""}},
    {REMOVE, "/samples/0/spans/stop", NULL, 0, "", {"/samples/0/spans/stop", "missing", ""}},
    {REMOVE, T3, NULL, 0, "", {"lacks layer 3", "\"alpha\"", ""}},
    {REMOVE, T3 "/v", NULL, 0, "", {T3 "/v", "missing", ""}},
    {UNSET, T3 "/k", "storage_dtype", 0, "", {T3 "/k", "state the type", "uint16"}},
    {WORD, T3 "/k", "storage_dtype", 0, "float32", {T3 "/k", "\"float32\"", "uint16"}},
    {WORD, T3 "/k", "storage_dtype", 0, "float8_e4m3fn", {T3 "/k", "float8", "bfloat16"}},
    {WORD, T3 "/k", "storage_dtype", 0, "int4", {T3 "/k", "\"int4\"", "float16"}},
};

static void spoil_file(const ats_h5_file *file, const fault *f)
{
    ats_err err;
    switch (f->how) {
    case REMOVE:
        model_remove(file, f->object);
        return;
    case UNSET:
        assert_true(H5Adelete_by_name(file->id, f->object, f->attribute, H5P_DEFAULT) >= 0);
        return;
    case INTEGER:
        assert_ok(ats_h5_put_i64(file, f->object, f->attribute, (int64_t)f->number, &err), &err);
        return;
    case REAL:
        assert_ok(ats_h5_put_f64(file, f->object, f->attribute, f->number, &err), &err);
        return;
    case WORD:
        assert_ok(ats_h5_put_text(file, f->object, f->attribute, f->word, &err), &err);
    }
}

static void refused(const char *path, const char *const says[3])
{
    ats_err err = {.text = ""};
    ats_capture *got = NULL;
    const ats_code code = ats_capture_open(path, &got, &err);
    if (code == ATS_OK) fail_msg("%s %s %s: was accepted", says[0], says[1], says[2]);
    assert_true(code == ATS_E_INPUT || code == ATS_E_UNSUPPORTED);
    assert_null(got);
    assert_says(err.text, path, says[0], says[1], says[2]);
}

static void test_faults(void **state)
{
    (void)state;
    model m;
    int64_t size;
    model_make(&m);
    const char *good = scratch_path("good.h5");
    model_write(&m, good);
    uint8_t *bytes = scratch_read(good, &size);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const char *path = scratch_path("bad.h5");
        scratch_write(path, bytes, size);
        ats_h5_file file = model_edit(path);
        spoil_file(&file, &faults[i]);
        ats_h5_close(&file);
        refused(path, faults[i].says);
    }
    free(bytes);
    model_free(&m);
}

typedef struct swap {
    const char *name;
    ats_h5_type type;
    int rank;
    int64_t extent[3];
    const void *data; /* NULL: zeros */
    const char *says[3];
} swap;

#define SPANS "/samples/0/spans"
#define PROBES "/samples/0/probes"
static const int64_t negative[2] = {-1, 5}, past[2] = {5, 21}, empty[2] = {5, 5}, far[2] = {19, 20};
static const int64_t distant[2] = {0, INT64_MAX}, moved[2] = {5, -1};
static const float infinite[4] = {0, INFINITY, 0, 0};
static const float lowest[4] = {0, -INFINITY, 0, 0};
static const double not_a_number[3] = {1, NAN, 1};

static const swap swaps[] = {
    {SPANS "/start", ATS_H5_I64, 1, {2}, negative, {SPANS, "\"gold\" is [-1, 5)", "outside"}},
    {SPANS "/stop", ATS_H5_I64, 1, {2}, past, {SPANS, "[5, 21)", "20 keys"}},
    {SPANS "/start", ATS_H5_I64, 1, {2}, empty, {SPANS, "\"gold\" is [5, 5)", "empty"}},
    {SPANS "/start", ATS_H5_I64, 1, {3}, NULL, {SPANS "/start", "[3]", "[2]"}},
    {SPANS "/start", ATS_H5_F64, 1, {2}, NULL, {SPANS "/start", "float64", "integers"}},
    {PROBES "/index", ATS_H5_I64, 1, {2}, far, {PROBES, "probe 1", "20"}},
    {PROBES "/index", ATS_H5_I64, 1, {2}, moved, {PROBES, "probe 0", "position 22"}},
    {PROBES "/index", ATS_H5_I64, 1, {0}, NULL, {PROBES, "no probe", ""}},
    {PROBES "/position", ATS_H5_I64, 1, {2}, distant, {PROBES "/position", "element 1", ""}},
    {PROBES "/position", ATS_H5_I64, 2, {2, 1}, NULL, {PROBES "/position", "[2, 1]", "[2]"}},
    {"/samples/0/tokens", ATS_H5_U64, 1, {20}, NULL, {"", "", ""}},
    {"/samples/0/position", ATS_H5_I64, 1, {21}, NULL, {"/samples/0/position", "[21]", ""}},
    {L3 "/inv_freq", ATS_H5_F64, 1, {3}, not_a_number, {L3 "/inv_freq", "frequency 1", "finite"}},
    {L3 "/inv_freq", ATS_H5_F64, 1, {0}, NULL, {L3 "/inv_freq", "0 frequencies", ""}},
    {L3 "/sink", ATS_H5_F32, 1, {4}, infinite, {L3 "/sink", "non-finite", "column 1"}},
    {L3 "/sink", ATS_H5_F32, 1, {4}, lowest, {"", "", ""}}, /* a head without a sink */
    {L3 "/w_o", ATS_H5_F32, 3, {4, 5, 6}, NULL, {L3 "/w_o", "[4, 5, 6]", "d_model"}},
    {L3 "/w_o", ATS_H5_F32, 3, {4, 6, 7}, NULL, {"/readouts/direction", "[2, 5]", "[2, 7]"}},
    {L3 "/w_o", ATS_H5_U16, 3, {4, 6, 5}, NULL, {L3 "/w_o", "state the type", ""}},
    {"/readouts/direction", ATS_H5_F32, 1, {10}, NULL, {"/readouts/direction", "[10]", ""}},
    {T3 "/q", ATS_H5_F32, 3, {2, 4, 8}, NULL, {T3 "/q", "[2, 4, 8]", "[4, 2, 8]"}},
    {T3 "/q", ATS_H5_F64, 3, {4, 2, 8}, NULL, {T3 "/q", "float64", "float32"}},
    {T3 "/q", ATS_H5_I16, 3, {4, 2, 8}, NULL, {T3 "/q", "int16", "state the type"}},
    {T3 "/k", ATS_H5_F32, 2, {40, 8}, NULL, {T3 "/k", "[40, 8]", "[key head, key, d_qk]"}},
    {T3 "/v", ATS_H5_F32, 3, {2, 20, 8}, NULL, {T3 "/v", "[2, 20, 8]", "[2, 20, 6]"}},
    {T3 "/keep", ATS_H5_F32, 2, {2, 20}, NULL, {T3 "/keep", "float32", "uint8, int8 or bool"}},
    {T3 "/keep", ATS_H5_U8, 2, {20, 2}, NULL, {T3 "/keep", "[20, 2]", "[2, 20]"}},
    {T3 "/bias", ATS_H5_F32, 3, {3, 2, 20}, NULL, {T3 "/bias", "3 planes", "n_q_heads = 4"}},
    {T3 "/bias", ATS_H5_I32, 3, {1, 2, 20}, NULL, {T3 "/bias", "int32", "float32"}},
    {T3 "/out", ATS_H5_F32, 3, {4, 2, 8}, NULL, {T3 "/out", "[4, 2, 8]", "[4, 2, 6]"}},
    {T3 "/lse", ATS_H5_F32, 1, {8}, NULL, {T3 "/lse", "[8]", "[4, 2]"}},
    /* RC-04: a mask whose meaning is not stated. */
    {T3 "/attention_mask", ATS_H5_U8, 2, {2, 20}, NULL, {"attention_mask", "keep", "bias"}},
};

static void test_swapped_datasets(void **state)
{
    (void)state;
    static const uint8_t zeros[4096];
    model m;
    int64_t size;
    model_make(&m);
    const char *good = scratch_path("good.h5");
    model_write(&m, good);
    uint8_t *bytes = scratch_read(good, &size);
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        const swap *s = &swaps[i];
        const char *path = scratch_path("bad.h5");
        scratch_write(path, bytes, size);
        ats_h5_file file = model_edit(path);
        model_replace(&file, s->name, s->type, s->rank, s->extent,
                      s->data != NULL ? s->data : zeros);
        ats_h5_close(&file);
        if (s->says[0][0] == '\0') {
            ats_err err;
            ats_capture *got = NULL;
            assert_ok(ats_capture_open(path, &got, &err), &err);
            ats_capture_close(got);
            continue;
        }
        refused(path, s->says);
    }
    free(bytes);
    model_free(&m);
}

static void test_doubled_readouts(void **state)
{
    (void)state;
    ats_err err;
    model m;
    model_make(&m);
    const char *path = scratch_path("readouts.h5");
    model_write(&m, path);
    ats_h5_file file = model_edit(path);
    model_remove(&file, "/readouts/names");
    assert_ok(ats_h5_write_texts(&file, "/readouts/names", (const char *const[]){"a", "a"}, 2, NULL,
                                 &err),
              &err);
    ats_h5_close(&file);
    refused(path, (const char *const[]){"/readouts/names", "both \"a\"", "unique"});
    model_free(&m);
}

/* Seen when the mask is read: 2 may mean anything, and a damaged byte looks like it. */
static void test_keep_above_one(void **state)
{
    (void)state;
    ats_err err;
    ats_capture *got = NULL;
    ats_attention a;
    uint8_t keep[40] = {1, 1, 1, 2};
    const int64_t extent[2] = {2, 20};
    model m;
    model_make(&m);
    const char *path = scratch_path("keep.h5");
    model_write(&m, path);
    ats_h5_file file = model_edit(path);
    model_replace(&file, T3 "/keep", ATS_H5_U8, 2, extent, keep);
    ats_h5_close(&file);
    assert_ok(ats_capture_open(path, &got, &err), &err);
    assert_int_equal(ats_attention_load(got, 0, 0, &a, &err), ATS_E_INPUT);
    assert_says(err.text, T3 "/keep", "holds 2 at [0, 3]", "0 and 1");
    ats_capture_close(got);
    model_free(&m);
}

static void test_names(void **state)
{
    (void)state;
    ats_err err;
    model m;
    const char *const twice[] = {"gold", "gold"}, *const nameless[] = {"", "x"};
    const char *const *const lists[] = {twice, nameless};
    const char *const says[][3] = {{SPANS, "two spans", "\"gold\""}, {SPANS, "no name", "[2, 5)"}};
    model_make(&m);
    for (int i = 0; i < 2; i++) {
        const char *path = scratch_path("names.h5");
        model_write(&m, path);
        ats_h5_file file = model_edit(path);
        model_remove(&file, SPANS "/name");
        assert_ok(ats_h5_write_texts(&file, SPANS "/name", lists[i], 2, NULL, &err), &err);
        ats_h5_close(&file);
        refused(path, says[i]);
    }
    const char *path = scratch_path("names.h5");
    model_write(&m, path);
    ats_h5_file file = model_edit(path);
    assert_ok(ats_h5_group_create(&file, "/layers/one", &err), &err);
    ats_h5_close(&file);
    refused(path, (const char *const[]){"/layers", "\"one\"", "numbers"});
    model_free(&m);
}

/* RC-19 iii: two-byte opaque elements state nothing. */
static void test_opaque_words(void **state)
{
    (void)state;
    model m;
    const hsize_t extent[3] = {4, 2, 8};
    model_make(&m);
    const char *path = scratch_path("opaque.h5");
    model_write(&m, path);
    ats_h5_file file = model_edit(path);
    model_remove(&file, T3 "/q");
    const hid_t type = H5Tcreate(H5T_OPAQUE, 2), space = H5Screate_simple(3, extent, NULL);
    const hid_t id =
        H5Dcreate2(file.id, T3 "/q", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    uint16_t words[64] = {0x3f80};
    assert_true(H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, words) >= 0);
    H5Dclose(id);
    H5Sclose(space);
    H5Tclose(type);
    ats_h5_close(&file);
    refused(path, (const char *const[]){T3 "/q", "state the type", "2 bytes"});
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_swapped_datasets),
        cmocka_unit_test(test_doubled_readouts),
        cmocka_unit_test(test_keep_above_one),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_opaque_words),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
