/* Damaged files: every byte flipped somewhere, every length cut somewhere. Either a clean error or
 * a capture that loads; never a crash, a hang or a leak. */
#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parallel.h"
#include "capture/model.h"
#include "h5/scratch.h"
#include "support/check.h"

/* HDF5 1.10 loses memory of its own on some damaged headers; ours is checked by check_handles and
 * by every other leak. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

typedef struct outcome {
    int64_t refused_open, refused_load, loaded;
} outcome;

static void try_file(const char *path, outcome *seen)
{
    ats_err err = {.text = ""};
    ats_capture *got = NULL;
    const ats_code code = ats_capture_open(path, &got, &err);
    if (code != ATS_OK) {
        assert_true(err.text[0] != '\0');
        seen->refused_open++;
        return;
    }
    bool loaded = true;
    for (int64_t s = 0; s < got->n_samples; s++)
        for (int64_t l = 0; l < got->n_layers; l++) {
            ats_attention a;
            if (ats_attention_load(got, s, l, &a, &err) == ATS_OK)
                ats_attention_fini(&a);
            else
                loaded = false;
        }
    *(loaded ? &seen->loaded : &seen->refused_load) += 1;
    ats_capture_close(got);
}

static void flip(int fd, int64_t at, uint8_t byte)
{
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void check_handles(void)
{
    assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

/* Every `step`-th byte from `first` on, each with a different pattern. */
static void flip_bytes(const char *path, const uint8_t *bytes, int64_t size, int64_t first,
                       int64_t step, outcome *seen)
{
    static const uint8_t patterns[] = {0xff, 0x01, 0x80, 0x10, 0x7f};
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    for (int64_t at = first; at < size; at += step) {
        flip(fd, at, bytes[at] ^ patterns[(at / step) % 5]);
        try_file(path, seen);
        check_handles();
        flip(fd, at, bytes[at]);
    }
    close(fd);
}

static void test_flipped_bytes(void **state)
{
    (void)state;
    enum { FLIPS = 2400 };
    model m;
    int64_t size;
    outcome seen = {0};
    ats_set_threads(1);
    model_make(&m);
    model_shrink(&m);
    const char *path = scratch_path("flipped.h5");
    model_write(&m, path);
    uint8_t *bytes = scratch_read(path, &size);
    const int64_t step = size / FLIPS > 1 ? size / FLIPS : 1;
    flip_bytes(path, bytes, size, 0, step, &seen);
    flip_bytes(path, bytes, size < 400 ? size : 400, 0, 1, &seen);
    print_message("%lld bytes: %lld refused at opening, %lld at loading, %lld accepted\n",
                  (long long)size, (long long)seen.refused_open, (long long)seen.refused_load,
                  (long long)seen.loaded);
    assert_true(seen.refused_open > 100 && seen.refused_load > 0);
    free(bytes);
    model_free(&m);
    ats_set_threads(0);
}

static void test_cut_files(void **state)
{
    (void)state;
    enum { CUTS = 200 };
    model m;
    int64_t size;
    outcome seen = {0};
    ats_set_threads(1);
    model_make(&m);
    model_shrink(&m);
    const char *path = scratch_path("cut.h5");
    model_write(&m, path);
    uint8_t *bytes = scratch_read(path, &size);
    for (int64_t i = 0; i < CUTS; i++) {
        scratch_write(path, bytes, size * i / CUTS);
        try_file(path, &seen);
        check_handles();
    }
    scratch_write(path, bytes, size - 1);
    try_file(path, &seen);
    assert_int_equal(seen.refused_open, CUTS + 1);
    free(bytes);
    model_free(&m);
    ats_set_threads(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_cut_files),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
