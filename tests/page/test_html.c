#include <math.h>
#include <string.h>

#include "report/html.h"
#include "support/check.h"

static void escapes_to(const char *value, const char *expected)
{
    ats_arena arena = {.blocks = NULL};
    ats_err err = {.text = ""};
    ats_text text = {.arena = &arena, .err = &err};
    const char *out = NULL;
    ats_html_escape(&text, value);
    assert_int_equal(ats_text_done(&text, &out), ATS_OK);
    assert_string_equal(out, expected);
    ats_arena_fini(&arena);
}

static void test_markup_is_inert(void **state)
{
    (void)state;
    escapes_to("<script>alert('x')</script>",
               "&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;");
    escapes_to("a\" onload=\"b & c", "a&#34; onload=&#34;b &#38; c");
}

static void test_utf8_passes(void **state)
{
    (void)state;
    escapes_to("\xc3\xa9t\xc3\xa9 \xe6\xb0\xb4 \xf0\x9f\x98\x80",
               "\xc3\xa9t\xc3\xa9 \xe6\xb0\xb4 \xf0\x9f\x98\x80");
    escapes_to("", "");
}

static void test_bytes_that_are_no_text(void **state)
{
    (void)state;
    escapes_to("a\x01"
               "b\x7f",
               "a\\x01b\\x7F");
    escapes_to("\xff\xfe", "\\xFF\\xFE");
    escapes_to("\xed\xa0\x80", "\\xED\\xA0\\x80");          /* lone surrogate D800 */
    escapes_to("\xc0\xaf", "\\xC0\\xAF");                   /* overlong '/' */
    escapes_to("\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"); /* 110000 */
    escapes_to("cut \xe6\xb0", "cut \\xE6\\xB0");
    escapes_to("\xef\xbf\xbf", "\\u{FFFF}");
}

static void test_marks_that_reorder_text(void **state)
{
    (void)state;
    escapes_to("a\xe2\x80\xae"
               "b",
               "a\\u{202E}b");
    escapes_to("\xe2\x81\xa6x\xe2\x80\x8f", "\\u{2066}x\\u{200F}");
    escapes_to("\xc2\x85", "\\u{0085}");
}

static void number_is(double value, const char *expected)
{
    ats_arena arena = {.blocks = NULL};
    ats_err err = {.text = ""};
    ats_text text = {.arena = &arena, .err = &err};
    const char *out = NULL;
    ats_html_number(&text, value);
    assert_int_equal(ats_text_done(&text, &out), ATS_OK);
    assert_string_equal(out, expected);
    ats_arena_fini(&arena);
}

static void test_numbers(void **state)
{
    (void)state;
    number_is(0.123456, "0.1235");
    number_is(-0.0, "0");
    number_is((double)NAN, "\xe2\x80\x93");
    number_is(-(double)INFINITY, "\xe2\x88\x92\xe2\x88\x9e");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markup_is_inert),
        cmocka_unit_test(test_utf8_passes),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_marks_that_reorder_text),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
