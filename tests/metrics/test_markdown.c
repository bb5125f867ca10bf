/* The table is well formed and docs/metrics.md is what it writes. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "metrics/metric.h"
#include "support/check.h"

static void test_the_page_is_what_the_table_writes(void **state)
{
    (void)state;
    static char page[1 << 17];
    ats_arena arena = {.blocks = NULL};
    ats_err err;
    const char *text = NULL;
    assert_ok(ats_metrics_markdown(&arena, &text, &err), &err);
    FILE *f = fopen(ATS_SOURCE_DIR "/docs/metrics.md", "r");
    const size_t size = f != NULL ? fread(page, 1, sizeof page - 1, f) : 0;
    if (f != NULL) fclose(f);
    page[size] = '\0';
    const bool same = strcmp(page, text) == 0;
    if (!same) {
        f = fopen("metrics.md", "w");
        if (f != NULL) {
            fputs(text, f);
            fclose(f);
        }
    }
    ats_arena_fini(&arena);
    if (!same)
        fail_msg("docs/metrics.md is not what the table writes; the right text is in metrics.md of "
                 "the test's working directory");
}

static void test_every_metric_is_described(void **state)
{
    (void)state;
    int64_t count = 0;
    const ats_metric *const *all = ats_metrics(&count);
    assert_true(count >= 50);
    for (int64_t i = 0; i < count; i++) {
        for (const char *c = all[i]->name; *c != '\0'; c++)
            assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_');
        assert_ptr_equal(ats_metric_find(all[i]->name), all[i]);
        assert_true(strlen(all[i]->unit) > 0 && strlen(all[i]->long_name) > 0);
        assert_true(strlen(all[i]->definition) > 0);
        assert_non_null(all[i]->value);
        assert_true(all[i]->integer == (all[i]->fill != 0));
    }
    assert_null(ats_metric_find("speed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_page_is_what_the_table_writes),
        cmocka_unit_test(test_every_metric_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
