/* Golden rejections: every tests/golden/reject/NAME.yaml must be refused with exactly the text of
 * NAME.txt. ATS_UPDATE=1 in the environment writes the texts instead. */
#include "suite/fixture.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#define FOLDER ATS_SOURCE_DIR "/tests/golden/reject"

static int is_yaml(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".yaml") == 0;
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t used = file != NULL ? fread(text, 1, size - 1, file) : 0;
    while (used > 0 && text[used - 1] == '\n') used--;
    text[used] = '\0';
    if (file != NULL) fclose(file);
}

static bool is_as_written(const char *name)
{
    char path[300], want[ATS_ERR_TEXT + 1];
    ats_suite *suite = NULL;
    ats_err err = {.code = ATS_OK};
    snprintf(path, sizeof path, "%.*s.txt", (int)(strlen(name) - 5), name);
    if (ats_suite_load(name, NULL, 0, &suite, &err) == ATS_OK) {
        fprintf(stderr, "%s loads, and should not\n", name);
        ats_suite_free(suite);
        return false;
    }
    if (getenv("ATS_UPDATE") != NULL) {
        FILE *file = fopen(path, "w");
        if (file == NULL) return false;
        fprintf(file, "%s\n", err.text);
        return fclose(file) == 0;
    }
    read_text(path, want, sizeof want);
    if (strcmp(err.text, want) == 0) return true;
    fprintf(stderr, "%s is refused with\n%s\n-- and should be with\n%s\n", name, err.text, want);
    return false;
}

static void every_golden_file_is_refused_as_written(void **state)
{
    (void)state;
    struct dirent **entries = NULL;
    assert_int_equal(chdir(FOLDER), 0);
    const int count = scandir(".", &entries, is_yaml, alphasort);
    int bad = 0;
    for (int i = 0; i < count; i++) {
        bad += !is_as_written(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    assert_true(count >= 40);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_golden_file_is_refused_as_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
