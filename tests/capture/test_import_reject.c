/* Golden rejections of import headers: every tests/golden/import/NAME.yaml must be refused with
 * exactly the text of NAME.txt, and leaves no file; docs/import.md holds the field tables.
 * ATS_UPDATE=1 in the environment writes texts and reference instead. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/import.h"
#include "capture/import_header.h"
#include "h5/scratch.h"
#include "support/check.h"

#define FOLDER ATS_SOURCE_DIR "/tests/golden/import"
#define REFERENCE ATS_SOURCE_DIR "/docs/import.md"
#define MARK "<!-- generated from the field tables from here on -->\n"

static char scratch[4096]; /* absolute path of the output */

static int is_yaml(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);
    return n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

/* The text without trailing newlines and with `output` in place of the scratch folder's path. */
static void plain(char *text)
{
    char *at = strstr(text, scratch);
    if (at != NULL) {
        memcpy(at, "output", 6);
        memmove(at + 6, at + strlen(scratch), strlen(at + strlen(scratch)) + 1);
    }
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '\n') text[--n] = '\0';
}

static bool is_as_written(const char *name)
{
    static const char *const files[] = {"tensors.safetensors"};
    const ats_import_options options = {
        .header = name, .n_files = 1, .files = files, .output = scratch, .producer = "tests"};
    ats_arena arena;
    ats_import_report report;
    ats_err err = {.code = ATS_OK, .text = ""};
    char path[300], beside[5000];
    ats_arena_init(&arena, false);
    const ats_code rc = ats_import(&options, &arena, &report, &err);
    ats_arena_fini(&arena);
    snprintf(beside, sizeof beside, "%s.import", scratch);
    assert_true(access(scratch, F_OK) != 0 && access(beside, F_OK) != 0);
    if (rc == ATS_OK) fprintf(stderr, "%s is imported, and should not be\n", name);
    assert_int_equal(rc, ATS_E_INPUT);
    plain(err.text);
    snprintf(path, sizeof path, "%.*s.txt", (int)(strlen(name) - 5), name);
    if (getenv("ATS_UPDATE") != NULL) {
        strcat(err.text, "\n");
        scratch_write(path, err.text, (int64_t)strlen(err.text));
        return true;
    }
    int64_t size = 0;
    char *want = (char *)scratch_read(path, &size);
    const bool same =
        (int64_t)strlen(err.text) + 1 == size && strncmp(err.text, want, (size_t)size - 1) == 0;
    if (!same)
        fprintf(stderr, "%s is refused with\n%s\n-- and should be with\n%.*s\n", name, err.text,
                (int)size, want);
    free(want);
    return same;
}

static void every_golden_header_is_refused_as_written(void **state)
{
    (void)state;
    struct dirent **entries = NULL;
    char folder[3000];
    assert_non_null(getcwd(folder, sizeof folder));
    snprintf(scratch, sizeof scratch, "%s/%s", folder, scratch_path("output.h5"));
    assert_int_equal(chdir(FOLDER), 0);
    const int count = scandir(".", &entries, is_yaml, alphasort);
    int bad = 0;
    for (int i = 0; i < count; i++) {
        bad += !is_as_written(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(chdir(folder), 0);
    assert_true(count >= 45);
    assert_int_equal(bad, 0);
}

static void the_committed_reference_is_the_tables(void **state)
{
    (void)state;
    ats_arena arena;
    ats_err err;
    const char *reference = NULL;
    int64_t size = 0;
    ats_arena_init(&arena, false);
    assert_ok(ats_import_reference(&arena, &reference, &err), &err);
    char *page = (char *)scratch_read(REFERENCE, &size);
    char *text = malloc((size_t)size + strlen(reference) + 1);
    assert_non_null(text);
    memcpy(text, page, (size_t)size);
    text[size] = '\0';
    free(page);
    char *mark = strstr(text, MARK);
    assert_non_null(mark);
    if (getenv("ATS_UPDATE") != NULL) {
        strcpy(mark + strlen(MARK), reference);
        scratch_write(REFERENCE, text, (int64_t)strlen(text));
    }
    assert_string_equal(mark + strlen(MARK), reference);
    free(text);
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_golden_header_is_refused_as_written),
        cmocka_unit_test(the_committed_reference_is_the_tables),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
