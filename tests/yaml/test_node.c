#include "yaml/node.h"

#include <stdio.h>
#include <stdlib.h>

#include "yaml/fixture.h"

static void refused(const char *text, const char *place, const char *says)
{
    fixture f;
    parse(&f, text);
    const char *got = report(&f);
    assert_says(got, place, ": error: ", says);
    drop(&f);
}

static void nodes_know_their_place(void **state)
{
    (void)state;
    fixture f;
    parse(&f, "a: 1\nlist:\n  - x\n  - \"y\"\n");
    assert_string_equal(report(&f), "");
    const ats_node *list = ats_node_get(f.root, "list");
    assert_int_equal(list->count, 2);
    assert_int_equal(list->items[1]->line, 4);
    assert_int_equal(list->items[1]->column, 5);
    assert_true(list->items[1]->quoted);
    assert_false(list->items[0]->quoted);
    drop(&f);
}

/* RC-23, structure. */
static void a_duplicate_key_cites_both_lines(void **state)
{
    (void)state;
    refused("a: 1\nb: 2\na: 3\n", "t.yaml:3:1", "'a' is given twice: lines 1 and 3");
    refused("x: {p: 1, q: 2, p: 3}\n", "t.yaml:1:17", "lines 1 and 1");
}

/* RC-23, structure. */
static void tabs_indent_nothing(void **state)
{
    (void)state;
    refused("a:\n\tb: 1\n", "t.yaml:2:1", "a tab is used as indentation");
    refused("a:\n  b: 1\n\tc: 2\n", "t.yaml:3:1", "tab");
    refused("a: [\n\t1, 2]\n", "t.yaml:2:1", "tab");
    fixture f;
    parse(&f, "a: 3\t# three\nb: \"x\ty\"\n");
    assert_string_equal(report(&f), "");
    assert_string_equal(ats_node_get(f.root, "a")->text, "3");
    drop(&f);
}

/* RC-23, structure. */
static void one_document_with_known_aliases(void **state)
{
    (void)state;
    refused("a: 1\n---\nb: 2\n", "t.yaml:2:1", "a second document starts here");
    refused("a: *nobody\n", "t.yaml:1:4", "'*nobody' names no anchor");
    refused("a: &x [1, *x]\n", "t.yaml:1:11", "a cycle");
    refused("a: &x {p: 1}\nb:\n  <<: *x\n", "t.yaml:3:3", "merge keys (<<) are not read");
    refused("a: !!int 5\n", "t.yaml:1:4", "tag 'tag:yaml.org,2002:int' is not read");
    refused("[1, 2]: 5\n", "t.yaml:1:1", "a key must be a single word");
}

/* RC-23: a byte-order mark is accepted and moves no column. */
static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    fixture f;
    parse(&f, "\xef\xbb\xbf"
              "a: 1\na: 2\n");
    assert_string_equal(f.root->entries[0].key->text, "a");
    assert_int_equal(f.root->entries[0].key->column, 1);
    assert_says(report(&f), "t.yaml:2:1");
    drop(&f);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    (void)state;
    fixture f;
    parse_bytes(&f, "a: 1\nb\0: 2\n", 11);
    assert_null(f.root);
    assert_says(report(&f), "t.yaml:2:2", "NUL");
    drop(&f);
    refused("a: \"x\\0y\"\n", "t.yaml:1:4", "NUL");
    refused("a: 1\nb: \xff\xfe\n", "t.yaml:2:4", "UTF-8");
    refused("a: 1\nb: \xff\n", "t.yaml:2:4", "\n    b: ?\n");
    refused("a: \x01\n", "t.yaml:1:4", "UTF-8");
}

static void syntax_errors_have_a_place_and_a_hint(void **state)
{
    (void)state;
    refused("a: b: c\n", "t.yaml:1:5", "needs quotes");
    refused("a: [1, 2\nb: 3\n", "t.yaml:2:", "flow sequence that begins");
    refused("a: @x\n", "t.yaml:1:4", "put the text in quotes");
    refused("a: \"x\n", "t.yaml:", "quoted scalar");
}

static void depth_and_size_are_limited(void **state)
{
    (void)state;
    char deep[200];
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    deep[130] = '\0';
    refused(deep, "t.yaml:1:65", "more than 64 levels");
    memmove(deep, deep + 1, 128);
    deep[128] = '\0';
    fixture f;
    parse(&f, deep);
    assert_string_equal(report(&f), "");
    drop(&f);

    const size_t size = ATS_YAML_BYTES + 10;
    char *large = malloc(size);
    memset(large, ' ', size);
    parse_bytes(&f, large, (int64_t)size);
    assert_says(report(&f), "larger than 16 MiB");
    drop(&f);
    free(large);
}

/* "Billion laughs": each level names the one before nine times. */
static void aliases_count_as_all_they_stand_for(void **state)
{
    (void)state;
    char text[2048];
    int used = snprintf(text, sizeof text, "l0: &l0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 9; i++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "l%d: &l%d [", i, i);
        for (int j = 0; j < 9; j++)
            used +=
                snprintf(text + used, sizeof text - (size_t)used, "%s*l%d", j ? ", " : "", i - 1);
        used += snprintf(text + used, sizeof text - (size_t)used, "]\n");
    }
    refused(text, "t.yaml:", "more than 100,000 values");

    /* Depth through aliases. */
    used = snprintf(text, sizeof text, "l0: &l0 [x]\n");
    for (int i = 1; i < 65; i++)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "l%d: &l%d [*l%d]\n", i, i, i - 1);
    refused(text, "t.yaml:", "64 levels");
}

static void the_caret_stands_below_the_fault(void **state)
{
    (void)state;
    fixture f;
    parse(&f, "n\xc3\xa4me: x\ncount: 5\ncount: 6\n");
    assert_says(report(&f), "t.yaml:3:1: error: key 'count'",
                "[E-duplicate-key]\n    count: 6\n    ^");
    drop(&f);
    char text[1200] = "a: [";
    size_t used = 4;
    for (int i = 0; i < 200; i++) used += (size_t)snprintf(text + used, 8, "%d, ", 100 + i);
    snprintf(text + used, 20, "*lost]\n");
    parse(&f, text);
    assert_says(report(&f), "299, *lost]\n", "*lost");
    const char *caret = strrchr(f.err.text, '^'), *line = strstr(f.err.text, "\n    ");
    assert_true(caret != NULL && caret - line < 300);
    drop(&f);
}

static void all_issues_come_in_one_report_up_to_a_cap(void **state)
{
    (void)state;
    fixture f;
    char text[4096] = "";
    int used = 0;
    for (int i = 0; i < 30; i++)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "key-%02d: 1\nkey-%02d: 2\n", i, i);
    parse(&f, text);
    assert_int_equal(f.issues.count, 30);
    const char *got = report(&f);
    assert_says(got, "t.yaml:2:1", "t.yaml:40:1", "10 more errors are not shown");
    assert_null(strstr(got, "t.yaml:42:1"));
    assert_true(strlen(got) < ATS_ERR_TEXT);
    drop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_know_their_place),
        cmocka_unit_test(a_duplicate_key_cites_both_lines),
        cmocka_unit_test(tabs_indent_nothing),
        cmocka_unit_test(one_document_with_known_aliases),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(syntax_errors_have_a_place_and_a_hint),
        cmocka_unit_test(depth_and_size_are_limited),
        cmocka_unit_test(aliases_count_as_all_they_stand_for),
        cmocka_unit_test(the_caret_stands_below_the_fault),
        cmocka_unit_test(all_issues_come_in_one_report_up_to_a_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
