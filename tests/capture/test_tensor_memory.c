/* Memory of a layer's tensors, past the size from which it is asked for in large pages. */
#include <string.h>

#include "capture/memory.h"
#include "support/check.h"

static void sizes_around_a_large_page_are_held_to(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 4096, 2 << 20, (2 << 20) + 1, 5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ats_tensor_memory memory = {.room = {0}};
        ats_err err;
        size_t bytes[ATS_TENSORS] = {sizes[i]};
        assert_int_equal(ats_tensor_memory_fit(&memory, bytes, &err), ATS_OK);
        assert_true(memory.room[0] >= sizes[i] && (uintptr_t)memory.at[0] % 64 == 0);
        memset(memory.at[0], 1, sizes[i]);
        ats_tensor_memory_fini(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_around_a_large_page_are_held_to)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
