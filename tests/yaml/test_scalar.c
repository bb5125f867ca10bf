#include "yaml/scalar.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "yaml/fixture.h"

typedef struct good_real {
    const char *text;
    double value;
} good_real;

static void value_of(fixture *f, const char *text)
{
    char document[256];
    snprintf(document, sizeof document, "key: %s\n", text);
    parse(f, document);
    assert_non_null(f->root);
}

/* RC-23, number fields. */
static void numbers_of_the_core_schema_are_read(void **state)
{
    (void)state;
    const good_real cases[] = {{"1e3", 1000}, {"1.0e3", 1000}, {"1e-3", 0.001}, {".5", 0.5},
                               {"+5", 5},     {"0x1F", 31},    {"0o17", 15},    {"-2.5E+1", -25},
                               {"5.", 5},     {"0", 0},        {"-0.0", 0},     {"0e5", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        value_of(&f, cases[i].text);
        double x = NAN;
        assert_true(
            ats_read_real(&f.reader, ats_node_get(f.root, "key"), "key", NAN, NAN, false, &x));
        assert_near(x, cases[i].value, 0);
        drop(&f);
    }
}

/* RC-23, number fields. */
static void look_alikes_of_numbers_are_refused_with_a_hint(void **state)
{
    (void)state;
    const char *const cases[][2] = {{"010", "write 10 or 0o10"},
                                    {"1_000", "write 1000"},
                                    {"1,5", "decimal mark is '.'"},
                                    {"12:30", "':' is not part of a number"},
                                    {"1e400", "too large"},
                                    {"\"5\"", "take the quotes off"},
                                    {"'5'", "take the quotes off"},
                                    {"1e-400", "too small"},
                                    {".inf", "finite"},
                                    {".nan", "finite"},
                                    {"abc", "a number is wanted"},
                                    {"1e", "a number is wanted"},
                                    {"0x", "a number is wanted"},
                                    {"~", "a value must stand here"},
                                    {"", "a value must stand here"},
                                    {"[1]", "this is a list"},
                                    {"0xFFFFFFFFFFFFFFFFFF", "too large"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        value_of(&f, cases[i][0]);
        double x = 7;
        assert_false(
            ats_read_real(&f.reader, ats_node_get(f.root, "key"), "key", NAN, NAN, false, &x));
        assert_near(x, 7, 0);
        assert_says(report(&f), "t.yaml:1:", ": error: key: ", cases[i][1]);
        drop(&f);
    }
}

static void whole_numbers_are_digits_alone(void **state)
{
    (void)state;
    const char *const good[] = {"12", "+5", "-3", "0x1F", "9223372036854775807"};
    const int64_t values[] = {12, 5, -3, 31, INT64_MAX};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        fixture f;
        value_of(&f, good[i]);
        int64_t x = 0;
        assert_true(
            ats_read_int(&f.reader, ats_node_get(f.root, "key"), "key", INT64_MIN, INT64_MAX, &x));
        assert_int_equal(x, values[i]);
        drop(&f);
    }
    const char *const bad[][2] = {{"1e3", "1000"},
                                  {"5.0", "5"},
                                  {".5", "whole number"},
                                  {"010", "write 10"},
                                  {"1_000", "write 1000"},
                                  {"12:30", "':'"},
                                  {"9223372036854775808", "64 bits"},
                                  {"\"5\"", "quotes"},
                                  {"1,5", "','"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture f;
        value_of(&f, bad[i][0]);
        int64_t x = 7;
        assert_false(
            ats_read_int(&f.reader, ats_node_get(f.root, "key"), "key", INT64_MIN, INT64_MAX, &x));
        assert_int_equal(x, 7);
        assert_says(report(&f), bad[i][1], "whole number");
        drop(&f);
    }
}

/* RC-23, text fields. */
static void texts_keep_their_characters(void **state)
{
    (void)state;
    const char *const cases[] = {"no", "on", "NO", "y", "010", "12:30", "null", "1e3", "true"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        value_of(&f, cases[i]);
        const char *text = NULL;
        assert_true(ats_read_text(&f.reader, ats_node_get(f.root, "key"), "key", &text));
        assert_string_equal(text, cases[i]);
        drop(&f);
    }
    fixture f;
    value_of(&f, "~");
    const char *text = NULL;
    assert_false(ats_read_text(&f.reader, ats_node_get(f.root, "key"), "key", &text));
    assert_says(report(&f), "'~' is none", "[E-no-value]");
    drop(&f);
}

/* RC-23, boolean fields. */
static void booleans_are_true_and_false(void **state)
{
    (void)state;
    bool x = false;
    fixture f;
    value_of(&f, "true");
    assert_true(ats_read_bool(&f.reader, ats_node_get(f.root, "key"), "key", &x));
    assert_true(x);
    drop(&f);
    value_of(&f, "false");
    assert_true(ats_read_bool(&f.reader, ats_node_get(f.root, "key"), "key", &x));
    assert_false(x);
    drop(&f);
    const char *const bad[][2] = {{"no", "write false"}, {"on", "write true"},
                                  {"yes", "write true"}, {"y", "write true"},
                                  {"1", "write true"},   {"off", "write false"},
                                  {"0", "write false"},  {"maybe", "write true or false"},
                                  {"\"true\"", "quotes"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        value_of(&f, bad[i][0]);
        assert_false(ats_read_bool(&f.reader, ats_node_get(f.root, "key"), "key", &x));
        assert_says(report(&f), "t.yaml:1:6: error: key: ", bad[i][1]);
        drop(&f);
    }
}

static void bounds_and_words_are_told(void **state)
{
    (void)state;
    static const char *const words[] = {"mean", "median", "min", NULL};
    double x;
    int64_t n;
    const char *word = NULL;
    fixture f;
    value_of(&f, "1.5");
    assert_false(ats_read_real(&f.reader, ats_node_get(f.root, "key"), "key", -1, 1, false, &x));
    assert_says(report(&f), "1.5 is outside -1 to 1", "[E-range]");
    drop(&f);
    value_of(&f, "-4");
    assert_false(ats_read_int(&f.reader, ats_node_get(f.root, "key"), "key", 1, INT64_MAX, &n));
    assert_says(report(&f), "-4 is below the least value 1");
    drop(&f);
    value_of(&f, "meadian");
    assert_false(ats_read_word(&f.reader, ats_node_get(f.root, "key"), "key", words, &word));
    assert_says(report(&f), "not one of mean, median or min", "did you mean 'median'?");
    drop(&f);
    value_of(&f, ".inf");
    assert_true(ats_read_real(&f.reader, ats_node_get(f.root, "key"), "key", NAN, NAN, true, &x));
    assert_near(x, INFINITY, 0);
    drop(&f);
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", NULL};
    for (int i = 0; locales[i] != NULL && setlocale(LC_ALL, locales[i]) == NULL; i++) continue;
    char hint[100], text[32];
    double x = 0;
    assert_true(ats_parse_real("0.25", false, &x, hint, sizeof hint));
    assert_near(x, 0.25, 0);
    ats_format_real(0.25, text);
    assert_string_equal(text, "0.25");
    setlocale(LC_ALL, "C");
}

static void numbers_print_as_short_as_they_read_back(void **state)
{
    (void)state;
    const double values[] = {0.1, 1000, 1.0 / 3, 1e20, -2.5, 0, 131072, 0.95};
    const char *const texts[] = {"0.1",    "1000", "0.3333333333333333", "1e+20", "-2.5", "0",
                                 "131072", "0.95"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[32];
        ats_format_real(values[i], text);
        assert_string_equal(text, texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_the_core_schema_are_read),
        cmocka_unit_test(look_alikes_of_numbers_are_refused_with_a_hint),
        cmocka_unit_test(whole_numbers_are_digits_alone),
        cmocka_unit_test(texts_keep_their_characters),
        cmocka_unit_test(booleans_are_true_and_false),
        cmocka_unit_test(bounds_and_words_are_told),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(numbers_print_as_short_as_they_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
