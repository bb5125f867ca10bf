/* Suites, schema and reference that are part of the repository. ATS_UPDATE=1 in the environment
 * writes schema and reference anew instead of comparing them. */
#include "suite/fixture.h"

#include <dirent.h>
#include <stdlib.h>

static const char reference_mark[] = "<!-- generated from the field tables from here on -->\n";

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return calloc(1, 1);
    char *text = calloc(1, 1 << 20);
    const size_t used = fread(text, 1, (1 << 20) - 1, file);
    text[used] = '\0';
    fclose(file);
    return text;
}

/* Compares text with what stands in the file from `at` on, or replaces it. */
static void compare(const char *path, const char *mark, const char *text)
{
    char *old = read_file(path);
    char *at = mark != NULL ? strstr(old, mark) : old;
    assert_non_null(at);
    if (mark != NULL) at += strlen(mark);
    if (getenv("ATS_UPDATE") != NULL) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        fwrite(old, 1, (size_t)(at - old), file);
        fputs(text, file);
        fclose(file);
    } else if (strcmp(at, text) != 0) {
        fprintf(stderr, "%s is not what the tables say; run this test with ATS_UPDATE=1\n", path);
        fail();
    }
    free(old);
}

static void the_committed_schema_is_the_tables(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_err err;
    const char *text = NULL;
    assert_ok(ats_suite_schema(&arena, &text, &err), &err);
    compare(ATS_SOURCE_DIR "/schema/suite.schema.json", NULL, text);
    ats_arena_fini(&arena);
}

static void the_committed_reference_is_the_tables(void **state)
{
    (void)state;
    ats_arena arena = {.blocks = NULL};
    ats_err err;
    const char *text = NULL;
    assert_ok(ats_suite_reference(&arena, &text, &err), &err);
    compare(ATS_SOURCE_DIR "/docs/suite-yaml.md", reference_mark, text);
    ats_arena_fini(&arena);
}

static int is_yaml(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".yaml") == 0;
}

static void every_shipped_suite_loads(void **state)
{
    (void)state;
    struct dirent **entries = NULL;
    const int count = scandir(ATS_SOURCE_DIR "/suites", &entries, is_yaml, alphasort);
    assert_true(count >= 16);
    for (int i = 0; i < count; i++) {
        char path[400];
        ats_suite *s = NULL;
        ats_err err;
        snprintf(path, sizeof path, ATS_SOURCE_DIR "/suites/%s", entries[i]->d_name);
        assert_ok(ats_suite_load(path, NULL, 0, &s, &err), &err);
        ats_suite *again = must_load(s->resolved);
        assert_string_equal(s->hash, again->hash);
        ats_suite_free(again);
        ats_suite_free(s);
        free(entries[i]);
    }
    free(entries);
}

static void the_nightly_suite_uses_every_family(void **state)
{
    (void)state;
    ats_suite *s = NULL;
    ats_err err;
    assert_ok(ats_suite_load(ATS_SOURCE_DIR "/suites/nightly.yaml", NULL, 0, &s, &err), &err);
    int64_t count, controls = 0;
    const ats_family *const *families = ats_families(&count);
    for (int64_t i = 0; i < count; i++) {
        bool used = false;
        for (int64_t j = 0; j < s->n_perturbations; j++)
            used |= s->perturbations[j].family == families[i];
        if (!used) fprintf(stderr, "nightly.yaml lacks kind %s\n", families[i]->kind);
        assert_true(used);
    }
    for (int64_t i = 0; i < s->n_variants; i++) controls += s->variants[i].arm == ATS_ARM_CONTROL;
    assert_in_range(s->n_variants, 250, 350);
    assert_true(controls > 100);
    assert_true(s->n_gates >= 5);
    ats_suite_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_committed_schema_is_the_tables),
        cmocka_unit_test(the_committed_reference_is_the_tables),
        cmocka_unit_test(every_shipped_suite_loads),
        cmocka_unit_test(the_nightly_suite_uses_every_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
