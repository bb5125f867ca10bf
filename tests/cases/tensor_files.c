/* Regression cases RC-19 (words without a type), RC-21 (safetensors headers that lie) and RC-22
 * (npy and npz: column-major arrays, pickles). */
#include <stdlib.h>
#include <string.h>

#include "capture/import_tensors.h"
#include "capture/tensor_files.h"
#include "support/check.h"

static ats_arena arena;

static int setup(void **state)
{
    ats_arena_init(&arena, false);
    return scratch_setup(state);
}

static int teardown(void **state)
{
    ats_arena_fini(&arena);
    return scratch_teardown(state);
}

#define ONE_Q "{\"q\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"

/* RC-21 a */
static void data_at_an_odd_address_is_read(void **state)
{
    (void)state;
    static const float data[] = {1.0F, -2.5F};
    const char *path = scratch_path("odd.safetensors");
    ats_tensor_file file = {0};
    float got[2];
    ats_err err;
    assert_int_equal(strlen(ONE_Q), 54);
    safetensors_write(path, ONE_Q, 1, data, 8);
    assert_ok(ats_tensor_file_open(path, &arena, &file, &err), &err);
    assert_int_equal(file.n_tensors, 1);
    assert_int_equal(file.tensors[0].offset, 63);
    assert_ok(ats_tensor_read(&file.tensors[0], got, &err), &err);
    assert_memory_equal(got, data, 8);
    ats_tensor_file_close(&file);
}

#define T(name, type, shape, from, to)                                                             \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
#define GOOD T("good", "F32", "[2]", "0", "8")

/* RC-21 b to j and what else breaks a rule of the format. */
static const struct {
    const char *name, *header;
    int64_t size; /* data bytes */
    const char *tensor, *rule;
} lies[] = {
    {"b", "{" T("q", "F32", "[2]", "0", "8") "," T("q", "F32", "[2]", "0", "8") "}", 8, "\"q\"",
     "duplicate name"},
    {"c", "{" T("k", "F32", "[2]", "0", "8") "," T("v", "F32", "[2]", "4", "12") "}", 12, "k and v",
     "overlap"},
    {"d", "{" T("k", "F32", "[2]", "0", "8") "," T("v", "F32", "[2]", "12", "20") "}", 20,
     "tensor v", "gap of 4 bytes after k"},
    {"e", "{" T("q", "F32", "[2]", "8", "0") "}", 8, "tensor q", "order"},
    {"f", "{" T("q", "F32", "[1000,1000]", "0", "8") "}", 8, "tensor q", "size against shape"},
    {"g", "{" T("q", "F32", "[4]", "0", "16") "}", 8, "tensor q", "past the end of the file"},
    {"h", "{" T("q", "F31", "[2]", "0", "8") "}", 8, "tensor q", "unknown type \"F31\""},
    {"i negative", "{" T("q", "F32", "[2]", "-8", "8") "}", 8, "tensor q",
     "-8 is outside the range"},
    {"i huge", "{" T("q", "F32", "[2]", "0", "1e20") "}", 8, "tensor q", "outside the range"},
    {"i digits", "{" T("q", "F32", "[2]", "0", "100000000000000000000") "}", 8, "tensor q",
     "outside the range of 64 bits"},
    {"i real", "{" T("q", "F32", "[2]", "0", "8.0") "}", 8, "tensor q", "8.0 is outside"},
    {"two faults", "{" GOOD "," T("bad", "F31", "[2]", "8", "16") "}", 16, "tensor bad",
     "unknown type"},
    {"fault after a gap", "{" GOOD "," T("bad", "F32", "[3]", "8", "16") "}", 16, "tensor bad",
     "size against shape"},
    {"product", "{" T("q", "F32", "[4294967296,4294967296]", "0", "8") "}", 8, "tensor q",
     "more elements than 64 bits"},
    {"bits", "{" T("q", "F64", "[2305843009213693952]", "0", "8") "}", 8, "tensor q",
     "more than 64 bits"},
    {"negative extent", "{" T("q", "F32", "[-2]", "0", "8") "}", 8, "tensor q", "extent 0"},
    {"trailing", "{" GOOD "}", 12, "4 bytes after good", "belong to no tensor"},
    {"leading gap", "{" T("q", "F32", "[1]", "4", "8") "}", 8, "tensor q",
     "gap of 4 bytes after the header"},
    {"no dtype", "{\"q\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tensor q", "no dtype"},
    {"no shape", "{\"q\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "tensor q", "no shape"},
    {"no offsets", "{\"q\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "tensor q", "no data_offsets"},
    {"no object", "{\"q\":5}", 8, "tensor q", "object"},
    {"array",
     "["
     "1]",
     8, "neither", "begins with '{'"},
    {"blank first", " {" GOOD "}", 8, "neither", "begins with '{'"},
    {"garbage", "{" GOOD "}x", 8, "header", "not JSON"},
    {"metadata", "{\"__metadata__\":{\"a\":1}," GOOD "}", 8, "__metadata__",
     "entry a is not a text"},
    {"nul", "{\"q\\u0000\":1}", 8, "header", "not JSON"},
    {"utf8", "{\"q\xff\":1}", 8, "header", "not JSON"},
    {"dtype twice",
     "{\"q\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "\"dtype\"", "duplicate name"},
};

static void every_lie_is_refused(void **state)
{
    (void)state;
    static const uint8_t data[32];
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const char *path = scratch_path("lie.safetensors");
        ats_tensor_file file = {0};
        ats_err err = {.text = ""};
        safetensors_write(path, lies[i].header, 1, data, lies[i].size);
        if (ats_tensor_file_open(path, &arena, &file, &err) != ATS_E_INPUT) {
            print_error("RC-21 %s is not refused\n", lies[i].name);
            fail();
        }
        assert_says(err.text, "lie.safetensors", lies[i].tensor, lies[i].rule);
        assert_null(file.tensors);
    }
}

/* RC-21 j, and lengths that no file has */
static void short_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t length[8];
        const char *rule;
    } rows[] = {{{54}, "short header"},
                {{0}, "begins with '{'"},
                {{1, 225, 245, 5}, "short header"}, /* 100,000,001 */
                {{255, 255, 255, 255, 255, 255, 255, 255}, "short header"}};
    uint8_t bytes[8 + 30];
    const char *path = scratch_path("short.safetensors");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ats_tensor_file file;
        ats_err err;
        memcpy(bytes, rows[i].length, 8);
        memcpy(bytes + 8, ONE_Q, 30);
        scratch_write(path, bytes, sizeof bytes);
        assert_int_equal(ats_tensor_file_open(path, &arena, &file, &err), ATS_E_INPUT);
        assert_says(err.text, "short.safetensors", rows[i].rule);
    }
    for (int64_t size = 0; size < 8; size++) {
        ats_tensor_file file;
        ats_err err;
        scratch_write(path, bytes, size);
        assert_int_equal(ats_tensor_file_open(path, &arena, &file, &err), ATS_E_INPUT);
        assert_says(err.text, "neither safetensors, npy nor npz");
    }
}

static const ats_tensor *tensor_of(ats_tensor_file *file, const char *name)
{
    for (int64_t i = 0; i < file->n_tensors; i++)
        if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* The elements row-major, through the view that imports use. */
static void take(ats_tensor_file *file, const char *name, int rank, float *out, int64_t count)
{
    ats_import_set set = {.arena = &arena};
    ats_import_view view;
    float *taken = NULL;
    ats_err err;
    assert_ok(ats_import_view_last(tensor_of(file, name), rank, "", &view, &err), &err);
    assert_ok(ats_import_take_floats(&set, &view, NULL, 0, NULL, &taken, &err), &err);
    memcpy(out, taken, (size_t)count * sizeof *out);
    free(taken);
}

#define ARRAY(type, order, shape)                                                                  \
    "{'descr': '" type "', 'fortran_order': " order ", 'shape': " shape ", }"

/* RC-22 a, b: the same numbers in both orders, both byte orders, all versions. */
static void orders_do_not_change_numbers(void **state)
{
    (void)state;
    static const float want[] = {0, 1, 2, 3, 4, 5}, column[] = {0, 3, 1, 4, 2, 5};
    float swapped[6], got[6];
    double wide[6];
    for (int i = 0; i < 6; i++) {
        const uint8_t *in = (const uint8_t *)&want[i];
        uint8_t *out = (uint8_t *)&swapped[i];
        for (int b = 0; b < 4; b++) out[b] = in[3 - b];
        wide[i] = (double)want[i];
    }
    const struct {
        int version;
        const char *dictionary;
        const void *data;
        int64_t size;
    } rows[] = {{1, ARRAY("<f4", "True", "(2, 3)"), column, 24},
                {1, ARRAY("<f4", "False", "(2, 3)"), want, 24},
                {2, ARRAY("=f4", "False", "(2, 3)"), want, 24},
                {3, ARRAY(">f4", "False", "(2, 3)"), swapped, 24},
                {1, "{'shape': (2L, 3L), 'descr': \"<f8\", 'fortran_order':False}\n", wide, 48}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const char *path = scratch_path("layers.0.q.npy");
        int64_t length = 0;
        ats_tensor_file file;
        ats_err err;
        uint8_t *bytes =
            npy_bytes(rows[r].version, rows[r].dictionary, rows[r].data, rows[r].size, &length);
        scratch_write(path, bytes, length);
        free(bytes);
        assert_ok(ats_tensor_file_open(path, &arena, &file, &err), &err);
        take(&file, "layers.0.q", 2, got, 6);
        assert_memory_equal(got, want, sizeof want);
        ats_tensor_file_close(&file);
    }
}

/* RC-22 c and d, stored and deflated: (2, 3, 4) in both orders; an object array beside them. */
static void archives_are_read(void **state)
{
    (void)state;
    float rows[24], columns[24], got[24];
    for (int t = 0; t < 2; t++)
        for (int h = 0; h < 3; h++)
            for (int d = 0; d < 4; d++) {
                const float x = (float)(100 * t + 10 * h + d);
                rows[(t * 3 + h) * 4 + d] = x;
                columns[t + 2 * (h + 3 * d)] = x;
            }
    for (int deflate = 0; deflate < 2; deflate++) {
        const char *path = scratch_path("both.npz");
        npz_member m[3] = {{.name = "q.npy"}, {.name = "q_f.npy"}, {.name = "meta.npy"}};
        m[0].bytes =
            npy_bytes(1, ARRAY("<f4", "False", "(2, 3, 4)"), rows, sizeof rows, &m[0].size);
        m[1].bytes =
            npy_bytes(2, ARRAY("<f4", "True", "(2, 3, 4)"), columns, sizeof columns, &m[1].size);
        m[2].bytes = npy_bytes(1, ARRAY("|O", "False", "(1,)"), "\x80\x04N.", 4, &m[2].size);
        npz_write(path, m, 3, deflate);
        ats_tensor_file file;
        ats_err err;
        char ignored[64];
        assert_ok(ats_tensor_file_open(path, &arena, &file, &err), &err);
        assert_int_equal(file.n_tensors, 3);
        take(&file, "q", 3, got, 24);
        assert_memory_equal(got, rows, sizeof rows);
        take(&file, "q_f", 3, got, 24);
        assert_memory_equal(got, rows, sizeof rows);
        assert_int_equal(ats_tensor_read(tensor_of(&file, "meta"), ignored, &err), ATS_E_INPUT);
        assert_says(err.text, "meta", "object arrays are not read");
        ats_tensor_file_close(&file);
    }
}

/* RC-22 e */
static void pickles_are_refused(void **state)
{
    (void)state;
    static const uint8_t pickle[] =
        "\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05numpy\x94.";
    static const char *const names[] = {"renamed.npz", "renamed.npy", "model.safetensors"};
    ats_tensor_file file;
    ats_err err;
    for (int i = 0; i < 3; i++) {
        const char *path = scratch_path(names[i]);
        scratch_write(path, pickle, sizeof pickle);
        assert_int_equal(ats_tensor_file_open(path, &arena, &file, &err), ATS_E_UNSUPPORTED);
        assert_says(err.text, names[i], "is a pickle", "nothing is ever unpickled", "python3 -c");
    }
    const char *path = scratch_path("model.pt");
    npz_member member = {.name = "archive/data.pkl", .bytes = malloc(4), .size = 4};
    memset(member.bytes, 0, 4);
    npz_write(path, &member, 1, 0);
    assert_int_equal(ats_tensor_file_open(path, &arena, &file, &err), ATS_E_UNSUPPORTED);
    assert_says(err.text, "model.pt", "PyTorch", "nothing is ever unpickled");
}

static void npy_headers_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *dictionary, *says;
    } rows[] = {
        {ARRAY("<f4", "False", "(3,)"), "takes 12 bytes, but 8 follow"},
        {ARRAY("<f4", "False", "(1,)"), "takes 4 bytes, but 8 follow"},
        {ARRAY("<f4", "False", "(4294967296, 4294967296)"), "fewer elements than 2^63"},
        {ARRAY("<f8", "False", "(4611686018427387904,)"), "more bytes than 64 bits"},
        {ARRAY("<f4", "False", "(99999999999999999999,)"), "at most 64 bits"},
        {ARRAY("<f4", "False", "(-2,)"), "whole number from 0"},
        {ARRAY("<f4", "Maybe", "(2,)"), "True or False"},
        {ARRAY("<f4", "False", "2"), "shape in brackets"},
        {ARRAY("<f4", "False", "(2 2)"), "comma or the closing bracket"},
        {"{'descr': '<f4', 'shape': (2,)}", "lacks one of"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
         "duplicate key 'descr'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", "unknown key 'x'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "structured array"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + __import__('os')",
         "nothing more is wanted"},
        {"", "a dictionary is wanted"},
        {"{'descr': '<f4", "text in quotes"},
    };
    static const float data[] = {1, 2};
    const char *path = scratch_path("lie.npy");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ats_tensor_file file;
        ats_err err = {.text = ""};
        npy_write(path, rows[i].dictionary, data, 8);
        assert_int_equal(ats_tensor_file_open(path, &arena, &file, &err), ATS_E_INPUT);
        assert_says(err.text, "lie.npy", rows[i].says);
    }
    static const uint8_t ends[][12] = {
        {"\x93NUMPY\x04"}, {"\x93NUMPY\x01\x01"}, {"\x93NUMPY\x01\x00\xff\xff"}};
    for (size_t i = 0; i < 3; i++) {
        ats_tensor_file file;
        ats_err err;
        scratch_write(path, ends[i], 10);
        assert_int_equal(ats_tensor_file_open(path, &arena, &file, &err), ATS_E_INPUT);
        assert_says(err.text, i < 2 ? "is npy version" : "ends inside the npy header");
    }
}

/* RC-19 iii to v: two bytes without a type are asked about, BF16 is not. */
static void words_without_a_type_are_asked_about(void **state)
{
    (void)state;
    static const uint16_t words[] = {0x3f80, 0x4049, 0xc2f7, 0x0001, 0x7f7f,
                                     0x7f80, 0xff80, 0x7fc0, 0x8000};
    static const float values[] = {1.0F, 3.140625F, -123.5F, 9.183549615799121e-41F,
                                   3.3895313892515355e38F};
    static const char *const dictionaries[] = {ARRAY("<V2", "False", "(9,)"),
                                               ARRAY("|V2", "False", "(9,)"),
                                               ARRAY("<u2", "False", "(9,)")};
    const char *path = scratch_path("w.npy");
    ats_import_set set = {.arena = &arena};
    for (int i = 0; i < 4; i++) {
        ats_tensor_file file;
        ats_import_view view;
        ats_dtype dtype;
        void *got = NULL;
        ats_err err;
        if (i < 3) npy_write(path, dictionaries[i], words, sizeof words);
        const char *at = path;
        if (i == 3) {
            at = scratch_path("w.safetensors");
            safetensors_write(at, "{" T("w", "BF16", "[9]", "0", "18") "}", 0, words, 18);
        }
        assert_ok(ats_tensor_file_open(at, &arena, &file, &err), &err);
        assert_ok(ats_import_view_last(tensor_of(&file, "w"), 1, "", &view, &err), &err);
        if (i < 3) {
            assert_int_equal(ats_import_take_words(&set, &view, NULL, 0, NULL, &dtype, &got, &err),
                             ATS_E_INPUT);
            assert_says(err.text, "w.npy", "tensor w", "words: bfloat16 or words: float16");
        }
        assert_ok(ats_import_take_words(&set, &view, NULL, 0, i < 3 ? "bfloat16" : NULL, &dtype,
                                        &got, &err),
                  &err);
        assert_int_equal(dtype, ATS_BF16);
        assert_memory_equal(got, words, sizeof words);
        for (int j = 0; j < 5; j++) assert_true(ats_load(dtype, got, j) == values[j]);
        free(got);
        ats_tensor_file_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_at_an_odd_address_is_read),
        cmocka_unit_test(every_lie_is_refused),
        cmocka_unit_test(short_headers_are_refused),
        cmocka_unit_test(orders_do_not_change_numbers),
        cmocka_unit_test(archives_are_read),
        cmocka_unit_test(pickles_are_refused),
        cmocka_unit_test(npy_headers_that_lie_are_refused),
        cmocka_unit_test(words_without_a_type_are_asked_about),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
