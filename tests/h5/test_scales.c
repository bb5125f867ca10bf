#include "h5/scales.h"
#include "h5/scratch.h"
#include "support/check.h"

static void test_axes_have_names(void **state)
{
    (void)state;
    ats_err err;
    ats_h5_file file;
    ats_h5_dataset head, bare, mass;
    char name[32];
    const int64_t extent[2] = {3, 3}, heads[3] = {0, 1, 2};
    const float values[9] = {0};
    assert_ok(ats_h5_create(scratch_path("scales.h5"), &file, &err), &err);
    assert_ok(ats_h5_save(&file, "/head", ATS_H5_I64, 1, extent, heads, &err), &err);
    assert_ok(ats_h5_save(&file, "/mass", ATS_H5_F32, 2, extent, values, &err), &err);
    assert_ok(ats_h5_dataset_open(&file, "/head", &head, &err), &err);
    assert_ok(ats_h5_dataset_open(&file, "/mass", &mass, &err), &err);
    assert_ok(ats_h5_scale_make(&head, "head", &err), &err);
    assert_ok(ats_h5_scale_bare(&file, "/probe", 3, &bare, &err), &err);
    assert_ok(ats_h5_scales_attach(&mass, (const ats_h5_dataset *[]){&head, &bare}, &err), &err);
    assert_ok(ats_h5_scale_name(&mass, 0, name, sizeof name, &err), &err);
    assert_string_equal(name, "head");
    assert_ok(ats_h5_scale_name(&mass, 1, name, sizeof name, &err), &err);
    assert_string_equal(name, "probe");
    assert_int_equal(ats_h5_scales_attach(&mass, (const ats_h5_dataset *[]){&head, &bare}, &err),
                     ATS_E_IO);
    assert_says(err.text, "/mass", "scales");
    ats_h5_dataset_close(&head);
    ats_h5_dataset_close(&bare);
    ats_h5_dataset_close(&mass);
    ats_h5_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_axes_have_names)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
