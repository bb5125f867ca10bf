#include <hdf5.h>
#include <string.h>

#include "h5/attr.h"
#include "h5/scratch.h"
#include "support/check.h"

static void put_raw(const ats_h5_file *file, const char *name, hid_t type, const void *value)
{
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t id =
        H5Acreate_by_name(file->id, "/", name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(id >= 0 && H5Awrite(id, type, value) >= 0);
    H5Aclose(id);
    H5Sclose(space);
}

static ats_h5_file new_file(void)
{
    ats_err err;
    ats_h5_file file;
    assert_ok(ats_h5_create(scratch_path("attr.h5"), &file, &err), &err);
    return file;
}

static void test_integers_of_any_width(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file = new_file();
    int64_t got = 0;
    const int8_t small = -7;
    const uint16_t word = 65535;
    const uint64_t large = UINT64_MAX, fits = 12;
    put_raw(&file, "i8", H5T_NATIVE_INT8, &small);
    put_raw(&file, "u16", H5T_NATIVE_UINT16, &word);
    put_raw(&file, "u64", H5T_NATIVE_UINT64, &large);
    put_raw(&file, "fits", H5T_NATIVE_UINT64, &fits);
    put_raw(&file, "be", H5T_STD_I32BE, &(int32_t){0x02000000});
    assert_ok(ats_h5_get_i64(&file, "/", "i8", &got, &err), &err);
    assert_int_equal(got, -7);
    assert_ok(ats_h5_get_i64(&file, "/", "u16", &got, &err), &err);
    assert_int_equal(got, 65535);
    assert_ok(ats_h5_get_i64(&file, "/", "fits", &got, &err), &err);
    assert_int_equal(got, 12);
    assert_ok(ats_h5_get_i64(&file, "/", "be", &got, &err), &err);
    assert_int_equal(got, 2);
    assert_int_equal(ats_h5_get_i64(&file, "/", "u64", &got, &err), ATS_E_INPUT);
    assert_says(err.text, "attr.h5", "\"u64\"", "2^63");
    ats_h5_close(&file);
}

/* The way h5py stores True: an enum of one byte. */
static void test_booleans(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file = new_file();
    int64_t got = 0;
    const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(type, "FALSE", &(int8_t){0});
    H5Tenum_insert(type, "TRUE", &(int8_t){1});
    put_raw(&file, "flag", type, &(int8_t){1});
    H5Tclose(type);
    assert_ok(ats_h5_get_i64(&file, "/", "flag", &got, &err), &err);
    assert_int_equal(got, 1);
    ats_h5_close(&file);
}

static void test_floats(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file = new_file();
    double got = 0;
    int64_t integer = 0;
    put_raw(&file, "f32", H5T_NATIVE_FLOAT, &(float){0.25f});
    put_raw(&file, "int", H5T_NATIVE_INT32, &(int32_t){3});
    assert_ok(ats_h5_put_f64(&file, "/", "f64", 1e300, &err), &err);
    assert_ok(ats_h5_get_f64(&file, "/", "f32", &got, &err), &err);
    assert_near(got, 0.25, 0);
    assert_ok(ats_h5_get_f64(&file, "/", "f64", &got, &err), &err);
    assert_near(got, 1e300, 0);
    assert_ok(ats_h5_get_f64(&file, "/", "int", &got, &err), &err);
    assert_near(got, 3, 0);
    assert_int_equal(ats_h5_get_i64(&file, "/", "f32", &integer, &err), ATS_E_INPUT);
    assert_says(err.text, "\"f32\"", "float32", "integer");
    ats_h5_close(&file);
}

static void test_texts(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file = new_file();
    ats_arena arena;
    const char *got = NULL;
    double number = 0;
    ats_arena_init(&arena, false);
    const hid_t fixed = H5Tcopy(H5T_C_S1);
    H5Tset_size(fixed, 5);
    H5Tset_strpad(fixed, H5T_STR_NULLPAD);
    put_raw(&file, "fixed", fixed, "abcde");
    H5Tclose(fixed);
    assert_ok(ats_h5_put_text(&file, "/", "text", "na\xc3\xafve", &err), &err);
    assert_ok(ats_h5_put_text(&file, "/", "text", "again", &err), &err);
    assert_ok(ats_h5_put_text(&file, "/", "empty", "", &err), &err);
    assert_ok(ats_h5_get_text(&file, "/", "fixed", &arena, &got, &err), &err);
    assert_string_equal(got, "abcde");
    assert_ok(ats_h5_get_text(&file, "/", "text", &arena, &got, &err), &err);
    assert_string_equal(got, "again");
    assert_ok(ats_h5_get_text(&file, "/", "empty", &arena, &got, &err), &err);
    assert_string_equal(got, "");
    assert_int_equal(ats_h5_get_f64(&file, "/", "text", &number, &err), ATS_E_INPUT);
    assert_says(err.text, "\"text\"", "text", "number");
    assert_int_equal(ats_h5_get_text(&file, "/", "none", &arena, &got, &err), ATS_E_INPUT);
    assert_says(err.text, "\"none\"", "missing");
    ats_arena_fini(&arena);
    ats_h5_close(&file);
}

static void test_arrays(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file = new_file();
    int64_t got = 0;
    const int32_t values[3] = {1, 2, 3};
    assert_ok(ats_h5_put_array(&file, "/", "three", ATS_H5_I32, 3, values, &err), &err);
    assert_int_equal(ats_h5_get_i64(&file, "/", "three", &got, &err), ATS_E_INPUT);
    assert_says(err.text, "3 values");
    assert_ok(ats_h5_put_array(&file, "/", "one", ATS_H5_I32, 1, values, &err), &err);
    assert_ok(ats_h5_get_i64(&file, "/", "one", &got, &err), &err);
    assert_int_equal(got, 1);
    ats_h5_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_of_any_width),
        cmocka_unit_test(test_booleans),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_arrays),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
