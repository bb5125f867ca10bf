/* The zstd filter against frames that lie. */
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "h5/zstd_filter.h"
#include "support/check.h"

enum { SIZE = 1000 };

static size_t run(unsigned flags, size_t n_values, unsigned want, void **buffer, size_t bytes,
                  size_t *room)
{
    const H5Z_class2_t *filter = ats_zstd_filter_class();
    const unsigned values[2] = {3, want};
    return filter->filter(flags, n_values, values, bytes, room, buffer);
}

/* SIZE bytes packed by the filter, in a buffer with unused room behind them. */
static void *packed(size_t *bytes, size_t *room)
{
    void *buffer = malloc(SIZE);
    memset(buffer, 7, SIZE);
    *room = SIZE;
    *bytes = run(0, 2, SIZE, &buffer, SIZE, room);
    assert_true(*bytes > 0 && *bytes < *room);
    return buffer;
}

static void test_round_trip(void **state)
{
    (void)state;
    size_t bytes, room;
    for (unsigned want = 0; want <= SIZE; want += SIZE) {
        void *buffer = packed(&bytes, &room);
        assert_int_equal(run(H5Z_FLAG_REVERSE, 2, want, &buffer, bytes, &room), SIZE);
        for (int i = 0; i < SIZE; i++) assert_int_equal(((unsigned char *)buffer)[i], 7);
        free(buffer);
    }
}

/* Byte count, not buffer size, is the input's length: bytes behind it are not read. */
static void test_length_is_the_byte_count(void **state)
{
    (void)state;
    size_t bytes, room;
    void *buffer = packed(&bytes, &room);
    memset((char *)buffer + bytes, 0xee, room - bytes);
    assert_int_equal(run(H5Z_FLAG_REVERSE, 2, SIZE, &buffer, bytes, &room), SIZE);
    free(buffer);
    buffer = packed(&bytes, &room);
    assert_int_equal(run(H5Z_FLAG_REVERSE, 2, SIZE, &buffer, bytes - 1, &room), 0);
    free(buffer);
}

static void test_other_size_is_refused(void **state)
{
    (void)state;
    size_t bytes, room;
    void *buffer = packed(&bytes, &room);
    assert_int_equal(run(H5Z_FLAG_REVERSE, 2, SIZE - 1, &buffer, bytes, &room), 0);
    assert_int_equal(run(H5Z_FLAG_REVERSE, 2, SIZE + 1, &buffer, bytes, &room), 0);
    free(buffer);
}

static void test_garbage_is_refused(void **state)
{
    (void)state;
    void *buffer = malloc(64);
    size_t room = 64;
    memset(buffer, 0x5a, 64);
    for (size_t n = 1; n <= 2; n++)
        assert_int_equal(run(H5Z_FLAG_REVERSE, n, SIZE, &buffer, 64, &room), 0);
    assert_int_equal(run(H5Z_FLAG_REVERSE, 1, 0, &buffer, 0, &room), 0);
    free(buffer);
}

/* A frame header that states 3 GiB in a few bytes is no frame of this size. */
static void test_bomb_is_refused(void **state)
{
    (void)state;
    const unsigned char head[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0xc0, 1, 0, 0};
    assert_int_equal(ZSTD_getFrameContentSize(head, sizeof head), 0xc0000000ULL);
    assert_int_equal(ats_zstd_stated(head, sizeof head), 0);
    void *buffer = malloc(sizeof head);
    size_t room = sizeof head;
    memcpy(buffer, head, sizeof head);
    assert_int_equal(run(H5Z_FLAG_REVERSE, 1, 0, &buffer, sizeof head, &room), 0);
    free(buffer);
}

/* A streamed frame states no size: the chunk's size bounds it, and without that it is refused. */
static void test_unstated_size(void **state)
{
    (void)state;
    unsigned char plain[SIZE], frame[SIZE];
    memset(plain, 9, sizeof plain);
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 0);
    const size_t bytes = ZSTD_compress2(zstd, frame, sizeof frame, plain, sizeof plain);
    ZSTD_freeCCtx(zstd);
    assert_false(ZSTD_isError(bytes));
    assert_true(ZSTD_getFrameContentSize(frame, bytes) == ZSTD_CONTENTSIZE_UNKNOWN);
    const struct {
        size_t n_values, got;
        unsigned want;
    } cases[] = {{2, SIZE, SIZE}, {1, 0, 0}, {2, 0, SIZE - 1}, {2, 0, SIZE + 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *buffer = malloc(bytes);
        size_t room = bytes;
        memcpy(buffer, frame, bytes);
        assert_int_equal(
            run(H5Z_FLAG_REVERSE, cases[i].n_values, cases[i].want, &buffer, bytes, &room),
            cases[i].got);
        free(buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_length_is_the_byte_count),
        cmocka_unit_test(test_other_size_is_refused),
        cmocka_unit_test(test_garbage_is_refused),
        cmocka_unit_test(test_bomb_is_refused),
        cmocka_unit_test(test_unstated_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
