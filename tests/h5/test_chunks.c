/* Chunk shapes, and boxes through the threaded pools against HDF5's own reading and writing. */
#include <fcntl.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"
#include "h5/chunks.h"
#include "h5/scratch.h"
#include "support/check.h"

/* RC-20 a: 1 <= chunk <= axis, under 4 GiB, about 1 MiB at most. */
static void test_planner(void **state)
{
    (void)state;
    const struct {
        int rank;
        int64_t extent[4], chunk[4];
        size_t element;
    } cases[] = {
        {2, {32768, 16384}, {8, 16384}, 8},
        {2, {1, 3}, {1, 3}, 4},
        {2, {0, 8}, {1, 8}, 4},
        {4, {1, 32, 4096, 4096}, {1, 1, 64, 4096}, 4},
        {1, {(int64_t)1 << 40}, {1 << 19}, 2},
        {3, {3, 5, 7}, {3, 5, 7}, 8},
        {1, {4}, {1}, 4 << 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t chunk[4] = {0};
        ats_h5_chunk_shape(cases[i].rank, cases[i].extent, cases[i].element, chunk);
        int64_t bytes = (int64_t)cases[i].element;
        for (int a = 0; a < cases[i].rank; a++) {
            assert_int_equal(chunk[a], cases[i].chunk[a]);
            bytes *= chunk[a];
        }
        assert_true(bytes <= 1 << 20 || cases[i].element > 1 << 20);
    }
    ats_h5_chunk_shape(0, NULL, 4, NULL);
}

typedef struct shape {
    int rank;
    int64_t extent[4], chunk[4];
} shape;

static const shape shapes[] = {
    {1, {1000}, {64}},           {2, {37, 19}, {8, 19}},
    {2, {37, 19}, {5, 4}},       {3, {3, 50, 16}, {1, 16, 16}},
    {3, {2, 33, 7}, {2, 10, 3}}, {4, {3, 2, 5, 6}, {1, 2, 2, 6}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static int64_t product(int rank, const int64_t *extent)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= extent[i];
    return n;
}

static ats_h5_layout layout_of(const shape *s, ats_h5_type type, int compression, bool shuffle)
{
    ats_h5_layout layout = {.type = type,
                            .rank = s->rank,
                            .chunked = true,
                            .shuffle = shuffle,
                            .compression = compression,
                            .level = 3};
    memcpy(layout.extent, s->extent, sizeof s->extent);
    memcpy(layout.chunk, s->chunk, sizeof s->chunk);
    return layout;
}

static void fill(uint8_t *bytes, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 28);
    }
}

/* HDF5's own view of the dataset, in its stored type. */
static void read_plain(const ats_h5_dataset *dataset, void *out)
{
    const hid_t type = H5Dget_type(dataset->id);
    assert_true(H5Dread(dataset->id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
    H5Tclose(type);
}

static void check_box(const ats_h5_dataset *dataset, const uint8_t *all, const shape *s,
                      uint32_t seed)
{
    ats_err err;
    int64_t start[4] = {0}, count[4] = {0}, stride[4] = {1, 1, 1, 1};
    for (int i = 0; i < s->rank; i++) {
        seed = seed * 1664525u + 1013904223u;
        start[i] = (seed >> 8) % s->extent[i];
        count[i] = 1 + (seed >> 20) % (s->extent[i] - start[i]);
    }
    for (int i = s->rank - 2; i >= 0; i--) stride[i] = stride[i + 1] * s->extent[i + 1];
    const int64_t n = product(s->rank, count);
    uint8_t *got = malloc((size_t)n * dataset->size);
    assert_ok(ats_h5_read_box(dataset, start, count, false, got, &err), &err);
    for (int64_t j = 0; j < n; j++) {
        int64_t at = 0, rest = j;
        for (int i = s->rank - 1; i >= 0; i--) {
            at += (start[i] + rest % count[i]) * stride[i];
            rest /= count[i];
        }
        assert_memory_equal(got + (size_t)j * dataset->size, all + (size_t)at * dataset->size,
                            dataset->size);
    }
    free(got);
}

static void round_trip(const shape *s, ats_h5_type type, int compression, bool shuffle)
{
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    const ats_h5_layout layout = layout_of(s, type, compression, shuffle);
    const size_t size = ats_h5_type_size(type);
    const int64_t n = product(s->rank, s->extent);
    uint8_t *data = malloc((size_t)n * size), *got = malloc((size_t)n * size);
    fill(data, n * (int64_t)size, 1);
    assert_ok(ats_h5_create(scratch_path("round.h5"), &file, &err), &err);
    assert_ok(ats_h5_dataset_create(&file, "/x", &layout, &dataset, &err), &err);
    assert_ok(ats_h5_write_box(&dataset, NULL, NULL, data, &err), &err);
    memset(got, 0, (size_t)n * size);
    read_plain(&dataset, got);
    assert_memory_equal(got, data, (size_t)n * size);
    ats_h5_dataset_close(&dataset);
    assert_ok(ats_h5_commit(&file, &err), &err);
    assert_ok(ats_h5_open(scratch_path("round.h5"), &file, &err), &err);
    assert_ok(ats_h5_dataset_open(&file, "/x", &dataset, &err), &err);
    assert_int_equal(dataset.type, type);
    memset(got, 0, (size_t)n * size);
    assert_ok(ats_h5_read_all(&dataset, false, got, &err), &err);
    assert_memory_equal(got, data, (size_t)n * size);
    for (uint32_t seed = 0; seed < 8; seed++) check_box(&dataset, data, s, seed);
    ats_h5_dataset_close(&dataset);
    ats_h5_close(&file);
    free(data);
    free(got);
}

static void test_round_trips(void **state)
{
    (void)state;
    const ats_h5_type types[] = {ATS_H5_U8,  ATS_H5_U16, ATS_H5_F16, ATS_H5_BF16,
                                 ATS_H5_F32, ATS_H5_I64, ATS_H5_F64};
    const int compressions[] = {0, ATS_H5_DEFLATE, ATS_H5_ZSTD};
    for (int s = 0; s < SHAPES; s++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (int c = 0; c < 3; c++)
                for (int shuffle = 0; shuffle < 2; shuffle++)
                    if ((s + (int)t + c) % 2 == shuffle || s == 3)
                        round_trip(&shapes[s], types[t], compressions[c], shuffle == 1);
}

/* Boxes of several datasets in one pass: whole chunks, pieces of chunks, more boxes than one batch
 * holds; the file is the one that single boxes give. */
static void test_many_boxes(void **state)
{
    (void)state;
    enum { DATASETS = 3, ROWS = 600, BOXES = DATASETS * ROWS / 4 };
    ats_err err;
    uint8_t *bytes[2];
    int64_t size[2];
    float *data = malloc(ROWS * 5 * sizeof *data);
    ats_h5_box *boxes = malloc(BOXES * sizeof *boxes);
    int64_t(*start)[2] = malloc(BOXES * sizeof *start);
    const int64_t count[] = {4, 5};
    fill((uint8_t *)data, ROWS * 5 * sizeof *data, 6);
    for (int run = 0; run < 2; run++) {
        ats_h5_file file;
        ats_h5_dataset dataset[DATASETS];
        const char *path = scratch_path(run == 0 ? "single.h5" : "many.h5");
        assert_ok(ats_h5_create(path, &file, &err), &err);
        for (int d = 0; d < DATASETS; d++) {
            const shape s = {2, {ROWS, 5}, {2, d == 2 ? 3 : 5}};
            const ats_h5_layout layout =
                layout_of(&s, ATS_H5_F32, d == 1 ? ATS_H5_DEFLATE : ATS_H5_ZSTD, true);
            const char name[] = {'/', (char)('a' + d), '\0'};
            assert_ok(ats_h5_dataset_create(&file, name, &layout, &dataset[d], &err), &err);
        }
        for (int i = 0; i < BOXES; i++) {
            start[i][0] = i / DATASETS * 4;
            start[i][1] = 0;
            boxes[i] =
                (ats_h5_box){&dataset[i % DATASETS], start[i], count, data + i / DATASETS * 20};
            if (run == 0)
                assert_ok(ats_h5_write_box(boxes[i].dataset, start[i], count, boxes[i].data, &err),
                          &err);
        }
        if (run == 1) assert_ok(ats_h5_write_many(boxes, BOXES, &err), &err);
        for (int d = 0; d < DATASETS; d++) {
            float got[ROWS * 5];
            assert_ok(ats_h5_read_all(&dataset[d], false, got, &err), &err);
            assert_memory_equal(got, data, sizeof got);
            ats_h5_dataset_close(&dataset[d]);
        }
        assert_ok(ats_h5_commit(&file, &err), &err);
        bytes[run] = scratch_read(path, &size[run]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], (size_t)size[0]);
    free(data);
    free(boxes);
    free(start);
    free(bytes[0]);
    free(bytes[1]);
}

/* Equal runs give equal bytes, whatever the thread count. */
static void test_bytes_do_not_depend_on_threads(void **state)
{
    (void)state;
    ats_err err;
    const shape s = {2, {4000, 64}, {100, 64}};
    const ats_h5_layout layout = layout_of(&s, ATS_H5_U16, ATS_H5_ZSTD, true);
    uint8_t *data = malloc(4000 * 64 * 2), *bytes[2];
    int64_t size[2];
    fill(data, 4000 * 64 * 2, 5);
    for (int run = 0; run < 2; run++) {
        ats_h5_file file;
        ats_h5_dataset dataset;
        const char *path = scratch_path(run == 0 ? "one.h5" : "three.h5");
        ats_set_threads(run == 0 ? 1 : 3);
        assert_ok(ats_h5_create(path, &file, &err), &err);
        assert_ok(ats_h5_dataset_create(&file, "/x", &layout, &dataset, &err), &err);
        assert_ok(ats_h5_write_box(&dataset, NULL, NULL, data, &err), &err);
        ats_h5_dataset_close(&dataset);
        assert_ok(ats_h5_commit(&file, &err), &err);
        bytes[run] = scratch_read(path, &size[run]);
    }
    ats_set_threads(0);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], (size_t)size[0]);
    free(data);
    free(bytes[0]);
    free(bytes[1]);
}

static void test_partial_boxes_are_written(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    const shape s = {2, {10, 6}, {4, 6}};
    const float nan_fill = 0x1p-3f;
    ats_h5_layout layout = layout_of(&s, ATS_H5_F32, ATS_H5_ZSTD, true);
    layout.fill = &nan_fill;
    float block[4 * 6], got[60];
    for (int i = 0; i < 24; i++) block[i] = (float)i;
    assert_ok(ats_h5_create(scratch_path("partial.h5"), &file, &err), &err);
    assert_ok(ats_h5_dataset_create(&file, "/x", &layout, &dataset, &err), &err);
    assert_ok(
        ats_h5_write_box(&dataset, (const int64_t[]){8, 0}, (const int64_t[]){2, 6}, block, &err),
        &err);
    assert_ok(
        ats_h5_write_box(&dataset, (const int64_t[]){1, 2}, (const int64_t[]){2, 3}, block, &err),
        &err);
    assert_ok(ats_h5_read_all(&dataset, true, got, &err), &err);
    assert_int_equal(ats_h5_read_all(&dataset, false, got, &err), ATS_E_INPUT);
    assert_says(err.text, "partial.h5", "/x", "never written");
    assert_near(got[8 * 6 + 7 - 6], 1, 0);
    assert_near(got[9 * 6 + 5], 11, 0);
    assert_near(got[1 * 6 + 2], 0, 0);
    assert_near(got[2 * 6 + 4], 5, 0);
    assert_near(got[0], 0.125, 0);
    assert_near(got[5 * 6], 0.125, 0);
    assert_int_equal(
        ats_h5_write_box(&dataset, (const int64_t[]){9, 0}, (const int64_t[]){2, 6}, block, &err),
        ATS_E_INTERNAL);
    ats_h5_dataset_close(&dataset);
    ats_h5_close(&file);
}

static void *read_sparse(void *dataset)
{
    ats_err err;
    float got[64 * 16];
    return (void *)(intptr_t)ats_h5_read_all(dataset, true, got, &err);
}

/* HDF5 prints in every thread that has not told it otherwise. */
static void test_threads_are_quiet(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    const shape s = {2, {64, 16}, {1, 16}};
    const ats_h5_layout layout = layout_of(&s, ATS_H5_F32, ATS_H5_ZSTD, true);
    float row[16] = {1};
    pthread_t thread;
    void *rc = &err;
    assert_ok(ats_h5_create(scratch_path("quiet.h5"), &file, &err), &err);
    assert_ok(ats_h5_dataset_create(&file, "/x", &layout, &dataset, &err), &err);
    assert_ok(
        ats_h5_write_box(&dataset, (const int64_t[]){0, 0}, (const int64_t[]){1, 16}, row, &err),
        &err);
    const int said = open(scratch_path("said"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const int kept = dup(STDERR_FILENO);
    assert_true(said >= 0 && kept >= 0);
    assert_int_equal(dup2(said, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(pthread_create(&thread, NULL, read_sparse, &dataset), 0);
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal((intptr_t)rc, ATS_OK);
    assert_int_equal(lseek(said, 0, SEEK_END), 0);
    close(said);
    close(kept);
    ats_h5_dataset_close(&dataset);
    ats_h5_close(&file);
}

static void test_types_are_converted(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    const int64_t extent[1] = {3};
    const int16_t small[3] = {-3, 0, 7};
    const double real[3] = {0.5, -1, 3};
    int64_t wide[3];
    float single[3];
    assert_ok(ats_h5_create(scratch_path("convert.h5"), &file, &err), &err);
    assert_ok(ats_h5_save(&file, "/i", ATS_H5_I16, 1, extent, small, &err), &err);
    assert_ok(ats_h5_save(&file, "/d", ATS_H5_F64, 1, extent, real, &err), &err);
    assert_ok(ats_h5_dataset_open(&file, "/i", &dataset, &err), &err);
    assert_ok(ats_h5_read(&dataset, NULL, NULL, ATS_H5_I64, wide, &err), &err);
    ats_h5_dataset_close(&dataset);
    assert_ok(ats_h5_dataset_open(&file, "/d", &dataset, &err), &err);
    assert_ok(ats_h5_read(&dataset, NULL, NULL, ATS_H5_F32, single, &err), &err);
    assert_ok(ats_h5_write(&dataset, NULL, NULL, ATS_H5_F32, single, &err), &err);
    ats_h5_dataset_close(&dataset);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wide[i], small[i]);
        assert_near(single[i], real[i], 0);
    }
    ats_h5_close(&file);
}

static void test_scalar_and_empty(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    const float one = 2.5f;
    float got = 0;
    const ats_h5_layout empty = {.type = ATS_H5_F32,
                                 .rank = 2,
                                 .extent = {0, 8},
                                 .chunked = true,
                                 .compression = ATS_H5_ZSTD,
                                 .level = 3};
    assert_ok(ats_h5_create(scratch_path("scalar.h5"), &file, &err), &err);
    assert_ok(ats_h5_save(&file, "/s", ATS_H5_F32, 0, NULL, &one, &err), &err);
    assert_ok(ats_h5_dataset_create(&file, "/e", &empty, &dataset, &err), &err);
    assert_ok(ats_h5_read_all(&dataset, false, &got, &err), &err);
    assert_int_equal(dataset.rank, 2);
    assert_int_equal(dataset.count, 0);
    assert_int_equal(dataset.extent[1], 8);
    ats_h5_dataset_close(&dataset);
    assert_ok(ats_h5_dataset_open(&file, "/s", &dataset, &err), &err);
    assert_int_equal(dataset.rank, 0);
    assert_ok(ats_h5_read_all(&dataset, false, &got, &err), &err);
    assert_near(got, 2.5, 0);
    ats_h5_dataset_close(&dataset);
    ats_h5_close(&file);
}

/* RC-20 b: one row of a 46341 x 46341 mask of which only that row is stored: offsets past 2^31. */
static void test_row_past_two_gigabytes(void **state)
{
    (void)state;
    enum { N = 46341 };
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    const shape s = {2, {N, N}, {1, N}};
    const uint8_t one = 1;
    ats_h5_layout layout = layout_of(&s, ATS_H5_U8, ATS_H5_ZSTD, false);
    layout.fill = &one;
    uint8_t *row = malloc(N);
    const int64_t count[2] = {1, N};
    memset(row, 1, N);
    row[N - 1] = 0;
    assert_ok(ats_h5_create(scratch_path("mask.h5"), &file, &err), &err);
    assert_ok(ats_h5_dataset_create(&file, "/keep", &layout, &dataset, &err), &err);
    assert_ok(ats_h5_write_box(&dataset, (const int64_t[]){N - 1, 0}, count, row, &err), &err);
    ats_h5_dataset_close(&dataset);
    assert_ok(ats_h5_commit(&file, &err), &err);
    assert_ok(ats_h5_open(scratch_path("mask.h5"), &file, &err), &err);
    assert_true(file.size < 100000);
    assert_ok(ats_h5_dataset_open(&file, "/keep", &dataset, &err), &err);
    memset(row, 9, N);
    assert_ok(ats_h5_read_box(&dataset, (const int64_t[]){N - 1, 0}, count, true, row, &err), &err);
    for (int i = 0; i < N - 1; i++) assert_int_equal(row[i], 1);
    assert_int_equal(row[N - 1], 0);
    assert_ok(ats_h5_read_box(&dataset, (const int64_t[]){5, 0}, count, true, row, &err), &err);
    assert_int_equal(row[N - 1], 1);
    ats_h5_dataset_close(&dataset);
    ats_h5_close(&file);
    free(row);
}

static void test_raw_chunks_are_copied(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset part, whole;
    const shape small = {2, {4, 6}, {2, 6}}, large = {2, {8, 6}, {2, 6}};
    const ats_h5_layout part_layout = layout_of(&small, ATS_H5_F32, ATS_H5_ZSTD, true);
    const ats_h5_layout whole_layout = layout_of(&large, ATS_H5_F32, ATS_H5_ZSTD, true);
    const ats_h5_layout other = layout_of(&large, ATS_H5_F32, ATS_H5_DEFLATE, true);
    float data[24], got[48];
    for (int i = 0; i < 24; i++) data[i] = (float)(i + 1);
    assert_ok(ats_h5_create(scratch_path("copy.h5"), &file, &err), &err);
    assert_ok(ats_h5_dataset_create(&file, "/part", &part_layout, &part, &err), &err);
    assert_ok(ats_h5_dataset_create(&file, "/whole", &whole_layout, &whole, &err), &err);
    assert_ok(ats_h5_write_box(&part, NULL, NULL, data, &err), &err);
    assert_ok(ats_h5_copy_chunks(&part, &whole, (const int64_t[]){4, 0}, &err), &err);
    assert_ok(ats_h5_read_all(&whole, true, got, &err), &err);
    assert_near(got[0], 0, 0);
    for (int i = 0; i < 24; i++) assert_near(got[24 + i], data[i], 0);
    ats_h5_dataset_close(&whole);
    assert_ok(ats_h5_dataset_create(&file, "/other", &other, &whole, &err), &err);
    assert_int_equal(ats_h5_copy_chunks(&part, &whole, (const int64_t[]){4, 0}, &err), ATS_E_INPUT);
    ats_h5_dataset_close(&whole);
    ats_h5_dataset_close(&part);
    ats_h5_close(&file);
}

/* Chunks with bytes of another size, or none, at a known place. */
static void test_damaged_chunks_are_named(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    const shape s = {2, {8, 16}, {4, 16}};
    const int compressions[] = {0, ATS_H5_DEFLATE, ATS_H5_ZSTD};
    uint8_t got[512], junk[100];
    memset(junk, 0x77, sizeof junk);
    for (int c = 0; c < 3; c++) {
        const ats_h5_layout layout = layout_of(&s, ATS_H5_F32, compressions[c], c > 0);
        const hsize_t origin[2] = {4, 0};
        memset(got, 3, sizeof got);
        assert_ok(ats_h5_create(scratch_path("damaged.h5"), &file, &err), &err);
        assert_ok(ats_h5_dataset_create(&file, "/x", &layout, &dataset, &err), &err);
        assert_ok(ats_h5_write_box(&dataset, NULL, NULL, got, &err), &err);
        const bool stored =
            H5Dwrite_chunk(dataset.id, H5P_DEFAULT, 0, origin, sizeof junk, junk) >= 0;
        if (stored && compressions[c] != 0) {
            assert_int_equal(ats_h5_read_all(&dataset, false, got, &err), ATS_E_INPUT);
            assert_says(err.text, "/x", "[4, 0]", "damaged");
        }
        ats_h5_dataset_close(&dataset);
        ats_h5_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planner),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_bytes_do_not_depend_on_threads),
        cmocka_unit_test(test_many_boxes),
        cmocka_unit_test(test_partial_boxes_are_written),
        cmocka_unit_test(test_threads_are_quiet),
        cmocka_unit_test(test_types_are_converted),
        cmocka_unit_test(test_scalar_and_empty),
        cmocka_unit_test(test_row_past_two_gigabytes),
        cmocka_unit_test(test_raw_chunks_are_copied),
        cmocka_unit_test(test_damaged_chunks_are_named),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
