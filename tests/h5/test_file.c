/* Files that are not there, not HDF5, locked, or that point elsewhere. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "h5/attr.h"
#include "h5/chunks.h"
#include "h5/scratch.h"
#include "support/check.h"

static void refuse(const char *path, ats_code code, const char *what)
{
    ats_err err;
    ats_h5_file file;
    assert_int_equal(ats_h5_open(path, &file, &err), code);
    assert_says(err.text, path, what);
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    refuse(scratch_path("absent.h5"), ATS_E_INPUT, "No such file");
    refuse(".", ATS_E_INPUT, "folder");
    refuse("/dev/null", ATS_E_INPUT, "ordinary file");
    scratch_write(scratch_path("empty.h5"), "", 0);
    refuse(scratch_path("empty.h5"), ATS_E_INPUT, "empty");
    scratch_write(scratch_path("text.h5"), "hello, this is no HDF5 at all", 29);
    refuse(scratch_path("text.h5"), ATS_E_INPUT, "not an HDF5 file");
}

static void make_file(const char *path)
{
    ats_err err;
    ats_h5_file file;
    const int64_t extent[1] = {4};
    const int32_t values[4] = {1, 2, 3, 4};
    assert_ok(ats_h5_create(path, &file, &err), &err);
    assert_ok(ats_h5_group_create(&file, "/g", &err), &err);
    assert_ok(ats_h5_save(&file, "/g/x", ATS_H5_I32, 1, extent, values, &err), &err);
    assert_ok(ats_h5_commit(&file, &err), &err);
}

static void test_commit_renames(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    const char *path = scratch_path("rename.h5"), *temporary = scratch_path("rename.h5.tmp");
    assert_ok(ats_h5_create(path, &file, &err), &err);
    assert_true(scratch_exists(temporary));
    assert_false(scratch_exists(path));
    ats_h5_close(&file);
    assert_false(scratch_exists(temporary));
    assert_false(scratch_exists(path));
    make_file(path);
    assert_true(scratch_exists(path));
    assert_false(scratch_exists(temporary));
    assert_int_equal(ats_h5_create("no/such/folder/x.h5", &file, &err), ATS_E_IO);
    assert_says(err.text, "no/such/folder/x.h5", "No such file");
}

static void refuse_target(const char *path, ats_code code, const char *what)
{
    ats_err err;
    ats_h5_file file;
    char temporary[512];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    assert_int_equal(ats_h5_create(path, &file, &err), code);
    assert_says(err.text, what);
    assert_false(scratch_exists(temporary));
}

/* The commit renames over what stands there: a device, a pipe or someone's text would be gone. */
static void test_what_is_not_replaced(void **state)
{
    (void)state;
    int64_t size;
    const char *text = scratch_path("thesis.txt"), *pipe_path = scratch_path("pipe");
    scratch_write(text, "my thesis", 9);
    refuse_target(text, ATS_E_IO, "is no HDF5 file; nothing was overwritten");
    uint8_t *kept = scratch_read(text, &size);
    assert_int_equal(size, 9);
    assert_memory_equal(kept, "my thesis", 9);
    free(kept);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    refuse_target(pipe_path, ATS_E_IO, "no ordinary file");
    refuse_target("/dev/null", ATS_E_IO, "no ordinary file");
    refuse_target(".", ATS_E_IO, "is a folder");
    refuse_target("", ATS_E_USAGE, "empty name");
    scratch_write(scratch_path("touched.h5"), "", 0);
    make_file(scratch_path("touched.h5"));
    make_file(scratch_path("touched.h5"));
}

static void check_locked_temporary(const char *temporary)
{
    ats_err err;
    ats_h5_file file;
    int64_t size[2];
    uint8_t *before = scratch_read(temporary, &size[0]);
    assert_int_equal(ats_h5_create(scratch_path("busy.h5"), &file, &err), ATS_E_LOCK);
    assert_says(err.text, "busy.h5", "busy.h5.tmp", "another process", "choose another output");
    uint8_t *after = scratch_read(temporary, &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(before, after, (size_t)size[0]);
    free(before);
    free(after);
}

static void while_locked(const char *path, void (*held)(const char *path));

/* Two runs with one output: the second must not truncate what the first is writing. */
static void test_output_that_another_run_writes(void **state)
{
    (void)state;
    char temporary[256];
    strcpy(temporary, scratch_path("busy.h5.tmp"));
    make_file(temporary);
    while_locked(temporary, check_locked_temporary);
    /* What a crash left behind is no obstacle. */
    make_file(scratch_path("busy.h5"));
    assert_false(scratch_exists(temporary));
}

static void test_equal_runs_give_equal_bytes(void **state)
{
    (void)state;
    int64_t size[2];
    make_file(scratch_path("a.h5"));
    make_file(scratch_path("b.h5"));
    uint8_t *a = scratch_read(scratch_path("a.h5"), &size[0]);
    uint8_t *b = scratch_read(scratch_path("b.h5"), &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, (size_t)size[0]);
    free(a);
    free(b);
}

/* Runs `held` while another process has path open for writing. */
static void while_locked(const char *path, void (*held)(const char *path))
{
    int ready[2], done[2];
    char byte = 'x';
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(done[1]);
        const hid_t id = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        byte = id >= 0 ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) < 0) _exit(1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    held(path);
    assert_int_equal(write(done[1], &byte, 1), 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
}

static void check_locked(const char *path)
{
    ats_err err;
    ats_h5_file file;
    int64_t size[2];
    uint8_t *before = scratch_read(path, &size[0]);
    assert_int_equal(ats_h5_open(path, &file, &err), ATS_E_LOCK);
    assert_says(err.text, path, "lock", "HDF5_USE_FILE_LOCKING");
    assert_int_equal(ats_h5_create(path, &file, &err), ATS_E_LOCK);
    assert_says(err.text, path, "lock", "HDF5_USE_FILE_LOCKING", "nothing was overwritten");
    uint8_t *after = scratch_read(path, &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(before, after, (size_t)size[0]);
    free(before);
    free(after);
}

/* RC-17 b: a file that someone writes is neither read nor replaced, and the message says how to
 * go on; its bytes stay. */
static void test_locked_file(void **state)
{
    (void)state;
    char path[256];
    strcpy(path, scratch_path("locked.h5"));
    make_file(path);
    while_locked(path, check_locked);
}

/* HDF5 reads the variable once, so this program asks in a process of its own: main's --open. */
static void check_unlocked(const char *path)
{
    char command[600], self[256] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "HDF5_USE_FILE_LOCKING=FALSE '%s' --open '%s'", self, path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "'%s' --open '%s'", self, path);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ATS_E_LOCK);
}

/* RC-17 d: HDF5_USE_FILE_LOCKING=FALSE is honoured. */
static void test_locking_can_be_off(void **state)
{
    (void)state;
    char path[256];
    strcpy(path, scratch_path("unlocked.h5"));
    make_file(path);
    while_locked(path, check_unlocked);
}

/* RC-17 c: two readers do not disturb each other. */
static void test_two_readers(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file a, b;
    const char *path = scratch_path("shared.h5");
    make_file(path);
    assert_ok(ats_h5_open(path, &a, &err), &err);
    assert_ok(ats_h5_open(path, &b, &err), &err);
    ats_h5_close(&a);
    ats_h5_close(&b);
}

static void refuse_dataset(const ats_h5_file *file, const char *name, const char *what)
{
    ats_err err;
    ats_h5_dataset dataset;
    assert_true(ats_h5_dataset_open(file, name, &dataset, &err) != ATS_OK);
    assert_says(err.text, name, what);
}

static void test_nothing_leaves_the_file(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    const hsize_t extent = 4;
    make_file(scratch_path("target.h5"));
    assert_ok(ats_h5_create(scratch_path("links.h5"), &file, &err), &err);
    H5Lcreate_external("target.h5", "/g/x", file.id, "away", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/away", file.id, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/loop", file.id, "loop", H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/passwd", 0, 16);
    hid_t id =
        H5Dcreate2(file.id, "outside", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(id >= 0);
    H5Dclose(id);
    H5Pclose(creation);
    H5Sclose(space);
    assert_ok(ats_h5_group_create(&file, "/g", &err), &err);
    assert_ok(ats_h5_save(&file, "/g/x", ATS_H5_I32, 1, (const int64_t[]){1}, &(int32_t){5}, &err),
              &err);
    H5Lcreate_soft("/g/x", file.id, "inside", H5P_DEFAULT, H5P_DEFAULT);
    assert_ok(ats_h5_dataset_open(&file, "/inside", &dataset, &err), &err);
    ats_h5_dataset_close(&dataset);
    refuse_dataset(&file, "/away", "external link");
    refuse_dataset(&file, "/soft", "external link");
    refuse_dataset(&file, "/loop", "HDF5 says");
    refuse_dataset(&file, "/outside", "external file");
    refuse_dataset(&file, "/g", "group");
    refuse_dataset(&file, "/g/none", "missing");
    ats_h5_close(&file);
}

static void test_virtual_dataset(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    const hsize_t extent = 4;
    const char *path = scratch_path("virtual.h5");
    const hid_t id = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_virtual(creation, space, "target.h5", "/g/x", space) >= 0);
    H5Dclose(H5Dcreate2(id, "v", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Pclose(creation);
    H5Sclose(space);
    H5Fclose(id);
    assert_ok(ats_h5_open(path, &file, &err), &err);
    refuse_dataset(&file, "/v", "virtual");
    ats_h5_close(&file);
}

static size_t copy_filter(unsigned flags, size_t n, const unsigned *values, size_t bytes,
                          size_t *room, void **buffer)
{
    (void)flags, (void)n, (void)values, (void)room, (void)buffer;
    return bytes;
}

/* RC-18 b: a filter that is not installed is named with the dataset. */
static void test_missing_filter(void **state)
{
    (void)state;
    enum { FILTER = 32099 };
    const H5Z_class2_t rare = {H5Z_CLASS_T_VERS, FILTER, 1, 1, "rare", NULL, NULL, copy_filter};
    ats_err err;
    ats_h5_file file;
    const hsize_t extent = 4;
    const int32_t values[4] = {1, 2, 3, 4};
    assert_ok(ats_h5_create(scratch_path("filter.h5"), &file, &err), &err);
    assert_true(H5Zregister(&rare) >= 0);
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, &extent);
    assert_true(H5Pset_filter(creation, FILTER, 0, 0, NULL) >= 0);
    const hid_t id =
        H5Dcreate2(file.id, "x", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    assert_true(H5Dwrite(id, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(id);
    H5Pclose(creation);
    H5Sclose(space);
    assert_ok(ats_h5_commit(&file, &err), &err);
    H5Zunregister(FILTER);
    assert_ok(ats_h5_open(scratch_path("filter.h5"), &file, &err), &err);
    refuse_dataset(&file, "/x", "32099 (rare)");
    ats_h5_close(&file);
}

static void test_children_are_sorted(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_arena arena;
    const char *const *names = NULL;
    int64_t count = 0;
    ats_arena_init(&arena, false);
    assert_ok(ats_h5_create(scratch_path("children.h5"), &file, &err), &err);
    const char *const made[] = {"/zeta", "/10", "/9", "/alpha"};
    for (int i = 0; i < 4; i++) assert_ok(ats_h5_group_create(&file, made[i], &err), &err);
    assert_ok(ats_h5_children(&file, "/", &arena, &names, &count, &err), &err);
    assert_int_equal(count, 4);
    const char *const want[] = {"10", "9", "alpha", "zeta"};
    for (int i = 0; i < 4; i++) assert_string_equal(names[i], want[i]);
    assert_int_equal(ats_h5_children(&file, "/none", &arena, &names, &count, &err), ATS_E_INPUT);
    ats_arena_fini(&arena);
    ats_h5_close(&file);
}

static void test_texts_of_both_kinds(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    ats_arena arena;
    const char *const *got = NULL;
    const char *const words[] = {"one", "", "drei\xc3\xa4"};
    const hsize_t extent = 2;
    ats_arena_init(&arena, false);
    assert_ok(ats_h5_create(scratch_path("texts.h5"), &file, &err), &err);
    assert_ok(ats_h5_write_texts(&file, "/v", words, 3, &dataset, &err), &err);
    assert_ok(ats_h5_read_texts(&dataset, &arena, &got, &err), &err);
    for (int i = 0; i < 3; i++) assert_string_equal(got[i], words[i]);
    ats_h5_dataset_close(&dataset);
    const hid_t fixed = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &extent, NULL);
    H5Tset_size(fixed, 4);
    const hid_t id = H5Dcreate2(file.id, "f", fixed, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(id, fixed, H5S_ALL, H5S_ALL, H5P_DEFAULT, "full\0\0\0\0") >= 0);
    H5Dclose(id);
    H5Sclose(space);
    H5Tclose(fixed);
    assert_ok(ats_h5_dataset_open(&file, "/f", &dataset, &err), &err);
    assert_ok(ats_h5_read_texts(&dataset, &arena, &got, &err), &err);
    assert_string_equal(got[0], "full");
    assert_string_equal(got[1], "");
    ats_h5_dataset_close(&dataset);
    assert_ok(ats_h5_save(&file, "/n", ATS_H5_I32, 1, (const int64_t[]){1}, &(int32_t){5}, &err),
              &err);
    assert_ok(ats_h5_dataset_open(&file, "/n", &dataset, &err), &err);
    assert_int_equal(ats_h5_read_texts(&dataset, &arena, &got, &err), ATS_E_INPUT);
    assert_says(err.text, "/n", "int32", "text");
    ats_h5_dataset_close(&dataset);
    ats_arena_fini(&arena);
    ats_h5_close(&file);
}

/* A tiny file that claims terabytes is refused before memory is asked for. */
static void test_claimed_size(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset dataset;
    float none;
    const ats_h5_layout huge = {.type = ATS_H5_F32,
                                .rank = 2,
                                .chunked = true,
                                .extent = {1 << 20, 1 << 20},
                                .compression = ATS_H5_ZSTD,
                                .level = 1};
    const ats_h5_layout unwritten = {.type = ATS_H5_F32, .rank = 1, .extent = {1000}};
    assert_ok(ats_h5_create(scratch_path("huge.h5"), &file, &err), &err);
    assert_ok(ats_h5_dataset_create(&file, "/huge", &huge, &dataset, &err), &err);
    assert_true(ats_h5_read_all(&dataset, true, &none, &err) == ATS_E_MEMORY);
    ats_h5_dataset_close(&dataset);
    assert_ok(ats_h5_dataset_create(&file, "/unwritten", &unwritten, &dataset, &err), &err);
    assert_int_equal(ats_h5_read_all(&dataset, false, &none, &err), ATS_E_INPUT);
    assert_says(err.text, "/unwritten", "4000 bytes", "never written");
    ats_h5_dataset_close(&dataset);
    ats_h5_close(&file);
}

static int open_only(const char *path)
{
    ats_err err;
    ats_h5_file file;
    const ats_code rc = ats_h5_open(path, &file, &err);
    if (rc == ATS_OK) ats_h5_close(&file);
    return (int)rc;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--open") == 0) return open_only(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_commit_renames),
        cmocka_unit_test(test_what_is_not_replaced),
        cmocka_unit_test(test_output_that_another_run_writes),
        cmocka_unit_test(test_equal_runs_give_equal_bytes),
        cmocka_unit_test(test_locked_file),
        cmocka_unit_test(test_locking_can_be_off),
        cmocka_unit_test(test_two_readers),
        cmocka_unit_test(test_nothing_leaves_the_file),
        cmocka_unit_test(test_virtual_dataset),
        cmocka_unit_test(test_missing_filter),
        cmocka_unit_test(test_children_are_sorted),
        cmocka_unit_test(test_texts_of_both_kinds),
        cmocka_unit_test(test_claimed_size),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
