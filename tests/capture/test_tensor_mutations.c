/* Damaged tensor files: bytes flipped, numbers and words of headers exchanged, lengths cut. Either
 * a clear sentence or tensors that can be read; never a crash, a hang or a leak. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "capture/import_tensors.h"
#include "capture/tensor_files.h"
#include "support/check.h"

enum { ROUNDS = 1500, LARGEST = 4096 };

typedef struct outcome {
    int64_t refused, unreadable, read;
} outcome;

/* Opens, reads every tensor, takes its numbers through a view. */
static void try_file(const char *path, outcome *seen)
{
    ats_arena arena;
    ats_arena_init(&arena, false);
    ats_import_set set = {.arena = &arena};
    ats_err err = {.text = ""};
    if (ats_import_open(&set, &path, 1, &err) != ATS_OK) {
        assert_true(strstr(err.text, path) != NULL && strlen(err.text) > strlen(path) + 10);
        seen->refused++;
    }
    for (int64_t i = 0; i < set.n_tensors; i++) {
        const ats_tensor *t = set.tensors[i];
        ats_import_view view;
        float *floats = NULL;
        err.text[0] = '\0';
        assert_true(t->bytes >= 0 && t->bytes <= LARGEST);
        const int rank = t->rank > 3 ? 3 : t->rank < 1 ? 1 : t->rank;
        ats_code rc = ats_import_view_last(t, rank, "[any]", &view, &err);
        if (rc == ATS_OK)
            rc = ats_import_take_floats(&set, &view, NULL, 0, "bfloat16", &floats, &err);
        assert_true(rc == ATS_OK || err.text[0] != '\0');
        *(rc == ATS_OK ? &seen->read : &seen->unreadable) += 1;
        free(floats);
    }
    ats_import_close(&set);
    ats_arena_fini(&arena);
}

/* A file that is cut and written again may be flushed to the disk each time; a new one is not. */
static void write_new(const char *path, const uint8_t *bytes, int64_t size)
{
    unlink(path);
    scratch_write(path, bytes, size);
}

/* Puts word in place of the bytes at `at`, longer or shorter; returns the new size. */
static int64_t splice(uint8_t *bytes, int64_t size, int64_t at, int64_t cut, const char *word)
{
    const int64_t length = (int64_t)strlen(word);
    if (at + cut > size) cut = size - at;
    if (size - cut + length > LARGEST) return size;
    memmove(bytes + at + length, bytes + at + cut, (size_t)(size - at - cut));
    memcpy(bytes + at, word, (size_t)length);
    return size - cut + length;
}

static int64_t mutate(ats_rng *rng, const uint8_t *good, int64_t size, int64_t header, uint8_t *out)
{
    static const char *const words[] = {"0",    "-1",      "9223372036854775807",
                                        "1e9",  "{",       "}",
                                        "[",    "]",       "(",
                                        ")",    ",",       ":",
                                        "\"",   "'",       "4294967296",
                                        "O",    "V2",      "null",
                                        "F64",  "f8",      "BF16",
                                        "True", "\\u0000", "\xc3"};
    memcpy(out, good, (size_t)size);
    const int64_t times = 1 + ats_rng_below(rng, 3);
    for (int64_t i = 0; i < times && size > 0; i++) {
        /* most damage goes to the header, where every byte means something */
        const int64_t reach = ats_rng_below(rng, 4) > 0 && header < size ? header : size;
        const int64_t at = ats_rng_below(rng, reach);
        switch (ats_rng_below(rng, 4)) {
        case 0:
            out[at] = (uint8_t)ats_rng_below(rng, 256);
            break;
        case 1:
            out[at] ^= (uint8_t)(1 << ats_rng_below(rng, 8));
            break;
        case 2:
            size = ats_rng_below(rng, 8) == 0 ? at : size;
            break;
        default:
            size = splice(out, size, at, ats_rng_below(rng, 4),
                          words[ats_rng_below(rng, (int64_t)(sizeof words / sizeof *words))]);
            break;
        }
    }
    return size;
}

static void damage(const char *name, const char *good_path, int64_t header)
{
    static uint8_t bytes[LARGEST];
    int64_t size = 0;
    outcome whole = {0}, seen = {0};
    uint8_t *good = scratch_read(good_path, &size);
    ats_rng rng = ats_rng_stream(7, name, "", 0, 0, "mutations");
    assert_true(size <= LARGEST);
    try_file(good_path, &whole);
    assert_true(whole.refused == 0 && whole.read > 0);
    for (int64_t i = 0; i < ROUNDS; i++) {
        const char *path = scratch_path(name);
        write_new(path, bytes, mutate(&rng, good, size, header, bytes));
        try_file(path, &seen);
    }
    /* every length, too */
    for (int64_t cut = 0; cut < size; cut += 1 + size / 200) {
        const char *path = scratch_path(name);
        write_new(path, good, cut);
        try_file(path, &seen);
    }
    free(good);
    print_message("%s: %lld refused, %lld tensors unreadable, %lld read\n", name,
                  (long long)seen.refused, (long long)seen.unreadable, (long long)seen.read);
    assert_true(seen.refused > ROUNDS / 4);
    assert_true(seen.read > 0);
}

static const float numbers[24] = {1, 2, 3, 4, 5, 6, 7, 8};

static void safetensors(void **state)
{
    (void)state;
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"layers.0.q\":{\"dtype\":\"F32\",\"shape\":[1,2,4],\"data_offsets\":[0,32]},"
        "\"layers.0.k\":{\"dtype\":\"BF16\",\"shape\":[2,2,4],\"data_offsets\":[32,64]},"
        "\"layers.0.v\":{\"dtype\":\"F64\",\"shape\":[1,4],\"data_offsets\":[64,96]}}";
    const char *path = scratch_path("good.safetensors");
    safetensors_write(path, header, 3, numbers, 96);
    damage("bad.safetensors", path, 8 + (int64_t)sizeof header);
}

#define ARRAY(type, order, shape)                                                                  \
    "{'descr': '" type "', 'fortran_order': " order ", 'shape': " shape ", }"

static void npy(void **state)
{
    (void)state;
    const char *path = scratch_path("good.npy");
    npy_write(path, ARRAY(">f4", "True", "(2, 3, 4)"), numbers, sizeof numbers);
    damage("bad.npy", path, 80);
}

static void npz(void **state)
{
    (void)state;
    for (int deflate = 0; deflate < 2; deflate++) {
        npz_member m[2] = {{.name = "q.npy"}, {.name = "k.npy"}};
        m[0].bytes = npy_bytes(1, ARRAY("<f4", "False", "(2, 3, 4)"), numbers, 96, &m[0].size);
        m[1].bytes = npy_bytes(2, ARRAY("<V2", "True", "(4, 12)"), numbers, 96, &m[1].size);
        const char *path = scratch_path("good.npz");
        npz_write(path, m, 2, deflate);
        damage(deflate ? "deflated.npz" : "stored.npz", path, LARGEST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors),
        cmocka_unit_test(npy),
        cmocka_unit_test(npz),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
