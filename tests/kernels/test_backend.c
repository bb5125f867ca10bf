#include "kernels/backend.h"

#include <string.h>

#include "kernels/reference.h"
#include "support/check.h"

static void test_table_keeps_every_name(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"reference", "cpu", "cuda", "cublas"};
    int64_t count;
    const ats_backend *const *table = ats_backends(&count);
    assert_int_equal(count, 4);
    for (int64_t i = 0; i < count; i++) {
        assert_string_equal(table[i]->name, NAMES[i]);
        assert_true(strlen(table[i]->summary) > 10);
        assert_non_null(table[i]->probe);
        assert_non_null(table[i]->supports);
        assert_non_null(table[i]->workspace_bytes);
        assert_non_null(table[i]->evaluate);
        assert_true(strlen(table[i]->detail()) > 0);
    }
}

static void test_find(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    const ats_backend *found = NULL;
    assert_ok(ats_backend_find("reference", &found, &err), &err);
    assert_ptr_equal(found, &ats_backend_reference);
    assert_ok(ats_backend_find("cpu", &found, &err), &err);
    assert_string_equal(found->name, "cpu");
    assert_ok(ats_backend_find("auto", &found, &err), &err);
    assert_true(found != &ats_backend_reference);
}

static void test_unknown_name_lists_the_known(void **state)
{
    (void)state;
    ats_err err = {.code = ATS_OK};
    const ats_backend *found = NULL;
    assert_int_equal(ats_backend_find("gpu", &found, &err), ATS_E_USAGE);
    assert_null(found);
    assert_says(err.text, "\"gpu\"", "auto", "reference", "cpu", "cuda", "cublas");
}

/* A backend that is not built says why, on every path that could run it. */
static void test_absent_backends_say_why(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"cuda", "cublas"};
    int64_t count;
    const ats_backend *const *table = ats_backends(&count);
    for (int i = 0; i < 2; i++) {
        const ats_backend *backend = table[2 + i];
        ats_err err = {.code = ATS_OK};
        if (backend->probe(&err) == ATS_OK) continue;
        assert_says(err.text, NAMES[i], "--backend cpu");
        const ats_backend *found = NULL;
        assert_int_equal(ats_backend_find(NAMES[i], &found, &err), ATS_E_DEVICE);
        assert_null(found);
        const ats_problem problem = {.n_keys = 1};
        assert_int_equal(backend->supports(&problem, &err), ATS_E_DEVICE);
        assert_int_equal(backend->evaluate(&problem, NULL, 0, NULL, NULL, &err), ATS_E_DEVICE);
        assert_int_equal(backend->workspace_bytes(&problem, 1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_keeps_every_name),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_unknown_name_lists_the_known),
        cmocka_unit_test(test_absent_backends_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
