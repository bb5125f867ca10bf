/* Codes, exit statuses and the error record. */
#include "support/check.h"

#include <string.h>

static void fail_writes_sentence(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    assert_int_equal(ats_fail(&err, ATS_E_INPUT, "%s: row %d", "a.h5", 7), ATS_E_INPUT);
    assert_string_equal(err.text, "a.h5: row 7");
    assert_int_equal(err.code, ATS_E_INPUT);
    assert_int_equal(ats_fail(NULL, ATS_E_IO, "no record"), ATS_E_IO);
}

static void prepend_keeps_the_story(void **state)
{
    (void)state;
    ats_err err;
    ats_fail(&err, ATS_E_SUITE, "count is 0");
    assert_int_equal(ats_prepend(&err, err.code, "variant %s", "v1"), ATS_E_SUITE);
    assert_string_equal(err.text, "variant v1: count is 0");
}

static void long_texts_are_cut_not_overrun(void **state)
{
    (void)state;
    static char big[2 * ATS_ERR_TEXT];
    memset(big, 'x', sizeof big - 1);
    ats_err err;
    ats_fail(&err, ATS_E_INPUT, "%s", big);
    assert_int_equal(strlen(err.text), ATS_ERR_TEXT - 1);
    ats_prepend(&err, err.code, "prefix");
    assert_int_equal(strlen(err.text), ATS_ERR_TEXT - 1);
    assert_memory_equal(err.text, "prefix: xxx", 11);
    ats_prepend(&err, err.code, "%s", big);
    assert_true(strlen(err.text) < ATS_ERR_TEXT);
}

static void exit_statuses_follow_the_table(void **state)
{
    (void)state;
    static const struct {
        ats_code code;
        int status;
    } rows[] = {{ATS_OK, 0},          {ATS_E_GATE, 1},     {ATS_E_INCONCLUSIVE, 2},
                {ATS_E_USAGE, 3},     {ATS_E_SUITE, 3},    {ATS_E_INPUT, 3},
                {ATS_E_UNSUPPORTED, 3}, {ATS_E_IO, 4},     {ATS_E_MEMORY, 4},
                {ATS_E_LOCK, 4},      {ATS_E_DEVICE, 4},   {ATS_E_INTERNAL, 5},
                {ATS_E_INTERRUPTED, 75}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(ats_code_exit(rows[i].code), rows[i].status);
        assert_true(strlen(ats_code_meaning(rows[i].code)) > 0);
    }
    assert_string_equal(ats_code_name(ATS_E_LOCK), "ATS_E_LOCK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_writes_sentence),
        cmocka_unit_test(prepend_keeps_the_story),
        cmocka_unit_test(long_texts_are_cut_not_overrun),
        cmocka_unit_test(exit_statuses_follow_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
