#include "base/nearest.h"

#include "support/check.h"

static const char *const words[] = {"width", "window", "count", "norm_ratio", NULL};

static void finds_what_was_meant(void **state)
{
    (void)state;
    assert_string_equal(ats_nearest("widht", words), "width");
    assert_string_equal(ats_nearest("windw", words), "window");
    const char *const keys[] = {"kind", "width", NULL};
    assert_string_equal(ats_nearest("windw", keys), "width"); /* RC-23 */
    assert_string_equal(ats_nearest("Count", words), "count");
    assert_string_equal(ats_nearest("norm-ratio", words), "norm_ratio");
}

static void stays_silent_when_nothing_is_close(void **state)
{
    (void)state;
    assert_null(ats_nearest("temperature", words));
    assert_null(ats_nearest("", words));
    assert_null(ats_nearest("xyz", words));
    const char *const none[] = {NULL};
    assert_null(ats_nearest("count", none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_meant),
        cmocka_unit_test(stays_silent_when_nothing_is_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
