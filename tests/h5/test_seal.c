/* Seals: any lost or altered byte is seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "h5/seal.h"
#include "support/check.h"

static char path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/attnstress-seal-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    char bytes[3000];
    for (int i = 0; i < 3000; i++) bytes[i] = (char)(i * 7);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

static bool is_whole(const char **why)
{
    bool whole = false;
    ats_err err = {.code = ATS_OK};
    assert_ok(ats_h5_seal_check(path, &whole, why, &err), &err);
    return whole;
}

static void a_sealed_file_is_whole(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    const char *why = "";
    struct stat status;
    assert_false(is_whole(&why));
    assert_says(why, "no seal");
    assert_ok(ats_h5_seal(path, &err), &err);
    assert_true(is_whole(&why));
    assert_string_equal(why, "");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 3000 + ATS_H5_SEAL_BYTES);
}

/* The words, by the library's one-shot function. */
static void the_seal_is_the_hash_of_what_stands_before(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    char bytes[3000 + ATS_H5_SEAL_BYTES], want[ATS_H5_SEAL_BYTES + 1];
    assert_ok(ats_h5_seal(path, &err), &err);
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    const XXH128_hash_t hash = XXH3_128bits(bytes, 3000);
    snprintf(want, sizeof want, "attnstress-seal\n%016llx%016llx%015x\n",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64, 3000U);
    assert_memory_equal(bytes + 3000, want, ATS_H5_SEAL_BYTES);
}

static void every_flipped_bit_is_seen(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    const char *why = "";
    assert_ok(ats_h5_seal(path, &err), &err);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    setbuf(file, NULL);
    for (long at = 0; at < 3000 + ATS_H5_SEAL_BYTES; at += 37) {
        for (int pass = 0; pass < 2; pass++) { /* flip, look, flip back */
            assert_int_equal(fseek(file, at, SEEK_SET), 0);
            const int byte = fgetc(file);
            assert_int_equal(fseek(file, at, SEEK_SET), 0);
            assert_true(fputc(byte ^ (1 << (at % 8)), file) != EOF);
            if (pass == 0) assert_false(is_whole(&why));
        }
    }
    fclose(file);
    assert_true(is_whole(&why));
}

static void every_cut_is_seen(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    const char *why = "";
    assert_ok(ats_h5_seal(path, &err), &err);
    for (off_t size = 3000 + ATS_H5_SEAL_BYTES - 1; size >= 0; size -= 61) {
        assert_int_equal(truncate(path, size), 0);
        assert_false(is_whole(&why));
    }
    assert_says(why, "too short");
}

static void a_missing_file_is_an_error(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    bool whole = true;
    const char *why = "";
    assert_int_equal(ats_h5_seal_check("/nowhere/x", &whole, &why, &err), ATS_E_IO);
    assert_says(err.text, "/nowhere/x");
    assert_int_equal(ats_h5_seal("/nowhere/x", &err), ATS_E_IO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sealed_file_is_whole),     TEST(the_seal_is_the_hash_of_what_stands_before),
        TEST(every_flipped_bit_is_seen),  TEST(every_cut_is_seen),
        TEST(a_missing_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
