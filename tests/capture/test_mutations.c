/* Damaged files: every byte flipped somewhere, every length cut somewhere. Either a clean error or
 * a capture that loads; never a crash, a hang or a leak. */
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"
#include "capture/content.h"
#include "capture/model.h"
#include "h5/scratch.h"
#include "support/check.h"

/* HDF5 1.10 loses memory of its own on some damaged headers; ours is checked by check_handles and
 * by every other leak. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

/* A damaged header may ask HDF5 for any amount of memory; it handles the refusal. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

/* What became of the damaged files. Of those that are accepted, some mean something else. */
typedef struct outcome {
    int64_t refused, same, other_texts, other_numbers;
} outcome;

static void try_file(const char *path, const content *want, outcome *seen)
{
    ats_err err = {.text = ""};
    content got;
    if (content_of(path, &got, &err) != ATS_OK) {
        assert_non_null(strstr(err.text, path));
        seen->refused++;
    } else if (got.numbers != want->numbers) {
        seen->other_numbers++;
    } else {
        *(got.texts != want->texts ? &seen->other_texts : &seen->same) += 1;
    }
}

static void flip(int fd, int64_t at, uint8_t byte)
{
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void check_handles(void)
{
    assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

/* A byte and what it is xored with. */
static void flip_at(int fd, const uint8_t *bytes, int64_t at, uint8_t pattern, const char *path,
                    const content *want, outcome *seen)
{
    flip(fd, at, bytes[at] ^ pattern);
    try_file(path, want, seen);
    check_handles();
    flip(fd, at, bytes[at]);
}

/* So many bytes of the whole file, each with a different pattern, and all of the first `head`. */
static outcome flip_bytes(const char *path, int64_t flips, int64_t head)
{
    static const uint8_t patterns[] = {0xff, 0x01, 0x80, 0x10, 0x7f};
    outcome seen = {0};
    ats_err err;
    content want;
    int64_t size;
    uint8_t *bytes = scratch_read(path, &size);
    const int64_t step = size / flips > 1 ? size / flips : 1;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_ok(content_of(path, &want, &err), &err);
    for (int64_t at = 0; at < size; at += at < head ? 1 : step)
        flip_at(fd, bytes, at, patterns[at % 5], path, &want, &seen);
    close(fd);
    free(bytes);
    print_message("%lld bytes: %lld refused, %lld the same, %lld with other texts, %lld with other "
                  "numbers\n",
                  (long long)size, (long long)seen.refused, (long long)seen.same,
                  (long long)seen.other_texts, (long long)seen.other_numbers);
    return seen;
}

static const char *written(const char *name)
{
    model m;
    const char *path = scratch_path(name);
    model_make(&m);
    model_shrink(&m);
    model_write(&m, path);
    model_free(&m);
    return path;
}

static const char *written_by_h5py(const char *name)
{
    int64_t size;
    const char *path = scratch_path(name);
    uint8_t *bytes = scratch_read(ATS_SOURCE_DIR "/tests/capture/fixtures/h5py.h5", &size);
    scratch_write(path, bytes, size);
    free(bytes);
    return path;
}

static void test_flipped_bytes(void **state)
{
    (void)state;
    const outcome seen = flip_bytes(written("flipped.h5"), 2000, 200);
    assert_true(seen.refused > 100);
    assert_int_equal(seen.other_numbers, 0);
}

/* Headers without checksums: no promise but to refuse or to go on. (Each opening makes a process,
 * which takes long.) */
static void test_flipped_bytes_of_h5py(void **state)
{
    (void)state;
    assert_true(flip_bytes(written_by_h5py("h5py.h5"), 100, 50).refused > 20);
}

typedef struct extent {
    int64_t start, count;
} extent;

/* Places of a tensor's chunks in the file. */
static int chunks_of(const char *path, const char *name, extent *out, int room)
{
    hsize_t count = 0, offset[8], bytes;
    haddr_t address;
    unsigned skipped;
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    assert_true(H5Dget_num_chunks(dataset, space, &count) >= 0 && (int)count <= room);
    for (hsize_t i = 0; i < count; i++) {
        assert_true(H5Dget_chunk_info(dataset, space, i, offset, &skipped, &address, &bytes) >= 0);
        out[i] = (extent){(int64_t)address, (int64_t)bytes};
    }
    H5Sclose(space);
    H5Dclose(dataset);
    H5Fclose(file);
    return (int)count;
}

/* Every byte of every chunk of a tensor: refused by name, or no number differs. */
static void flip_chunks(const char *path, const char *name, outcome *seen)
{
    extent chunks[16];
    ats_err err;
    ats_capture *open_capture = NULL;
    content want, got;
    int64_t size;
    const int n = chunks_of(path, name, chunks, 16);
    uint8_t *bytes = scratch_read(path, &size);
    const int fd = open(path, O_RDWR);
    assert_ok(ats_capture_open(path, &open_capture, &err), &err);
    assert_ok(content_of_open(open_capture, &want, &err), &err);
    for (int c = 0; c < n; c++)
        for (int64_t at = chunks[c].start; at < chunks[c].start + chunks[c].count; at++) {
            flip(fd, at, bytes[at] ^ (uint8_t)(1 << at % 8));
            const ats_code code = content_of_open(open_capture, &got, &err);
            flip(fd, at, bytes[at]);
            if (code == ATS_OK) {
                assert_true(got.numbers == want.numbers && got.texts == want.texts);
                seen->same++;
                continue;
            }
            assert_int_equal(code, ATS_E_INPUT);
            assert_says(err.text, path, name, "damaged");
            seen->refused++;
        }
    ats_capture_close(open_capture);
    close(fd);
    free(bytes);
}

static void test_flipped_chunks(void **state)
{
    (void)state;
    static const char *const ours[] = {"q", "k", "v", "out", "lse"};
    static const char *const theirs[] = {"q", "k", "v", "keep"};
    const char *path = written("chunks.h5");
    outcome seen = {0};
    char name[64];
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        snprintf(name, sizeof name, "/samples/0/layers/3/%s", ours[i]);
        flip_chunks(path, name, &seen);
    }
    path = written_by_h5py("chunks.h5");
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        snprintf(name, sizeof name, "/samples/0/layers/0/%s", theirs[i]);
        flip_chunks(path, name, &seen);
    }
    print_message("chunks: %lld flips refused, %lld without effect\n", (long long)seen.refused,
                  (long long)seen.same);
    assert_true(seen.refused > 20 * seen.same && seen.refused > 1000);
}

static void test_cut_files(void **state)
{
    (void)state;
    enum { CUTS = 200 };
    ats_err err;
    content want;
    int64_t size;
    outcome seen = {0};
    const char *path = written("cut.h5");
    assert_ok(content_of(path, &want, &err), &err);
    uint8_t *bytes = scratch_read(path, &size);
    for (int64_t i = 0; i <= CUTS; i++) {
        scratch_write(path, bytes, i < CUTS ? size * i / CUTS : size - 1);
        try_file(path, &want, &seen);
        check_handles();
    }
    assert_int_equal(seen.refused, CUTS + 1);
    free(bytes);
}

/* Small files: more threads would wait longer than they work. */
static int setup(void **state)
{
    ats_set_threads(1);
    return scratch_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_flipped_bytes_of_h5py),
        cmocka_unit_test(test_flipped_chunks),
        cmocka_unit_test(test_cut_files),
    };
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
