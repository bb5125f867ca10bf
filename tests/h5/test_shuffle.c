/* Shuffled bytes against the definition: plane b holds byte b of every element. */
#include <string.h>

#include "h5/shuffle.h"
#include "support/check.h"

enum { ELEMENTS = 103, STRIDE = 131 };

static void fill(uint8_t *bytes, size_t count, uint8_t mask)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < count; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(x >> 24) & mask;
    }
}

static void test_planes(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 8; size++) {
        uint8_t data[ELEMENTS * 8], planes[8 * STRIDE], back[ELEMENTS * 8];
        memset(planes, 0xee, sizeof planes);
        fill(data, ELEMENTS * size, 0xff);
        ats_h5_shuffle(data, size, ELEMENTS, STRIDE, planes);
        for (size_t b = 0; b < size; b++)
            for (size_t i = 0; i < STRIDE; i++)
                assert_int_equal(planes[b * STRIDE + i], i < ELEMENTS ? data[i * size + b] : 0xee);
        ats_h5_unshuffle(planes, STRIDE, size, ELEMENTS, 0, back);
        assert_memory_equal(back, data, ELEMENTS * size);
    }
}

/* One element at any place whose top byte has all the bits is told of; none is, and none is asked
 * for, otherwise. */
static void test_exponents(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 4, 8};
    for (size_t k = 0; k < 3; k++) {
        const size_t size = sizes[k];
        uint8_t planes[8 * STRIDE], out[ELEMENTS * 8];
        fill(planes, sizeof planes, 0xbf);
        uint8_t *top = planes + (size - 1) * STRIDE;
        assert_false(ats_h5_unshuffle(planes, STRIDE, size, ELEMENTS, 0x7f, out));
        for (size_t i = 0; i < ELEMENTS; i++) {
            const uint8_t before = top[i];
            top[i] = 0xff;
            assert_true(ats_h5_unshuffle(planes, STRIDE, size, ELEMENTS, 0x7f, out));
            assert_false(ats_h5_unshuffle(planes, STRIDE, size, ELEMENTS, 0, out));
            top[i] = 0x7c;
            assert_false(ats_h5_unshuffle(planes, STRIDE, size, ELEMENTS, 0x7f, out));
            assert_true(ats_h5_unshuffle(planes, STRIDE, size, ELEMENTS, 0x7c, out));
            top[i] = before;
        }
        top[ELEMENTS] = 0xff; /* behind the last */
        assert_false(ats_h5_unshuffle(planes, STRIDE, size, ELEMENTS, 0x7f, out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_exponents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
