/* Finite where a probe can see, anything elsewhere; every probe sees a key or has a sink. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/model.h"
#include "h5/scratch.h"
#include "support/check.h"

static ats_code load(const model *m, int sample, int layer, ats_err *err)
{
    ats_capture *got = NULL;
    ats_attention a;
    const char *path = scratch_path("visible.h5");
    model_write(m, path);
    assert_ok(ats_capture_open(path, &got, err), err);
    const ats_code code = ats_attention_load(got, sample, layer, &a, err);
    if (code == ATS_OK) ats_attention_fini(&a);
    ats_capture_close(got);
    return code;
}

/* Writes x at [head, row, column] of a tensor [heads, rows, width]. */
static void plant(void *tensor, ats_dtype dtype, int64_t rows, int64_t width, int64_t head,
                  int64_t row, int64_t column, float x)
{
    ats_narrow(dtype, &x, 1, tensor, (head * rows + row) * width + column);
}

/* RC-01 b: what is visible and not finite is named by tensor, head, row and column. */
static void test_visible_garbage(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        ats_err err;
        model m;
        model_make(&m);
        ats_attention *a = &m.tensors[0][0];
        plant(a->k, a->k_dtype, 20, 8, 1, 17, 5, bad[i]);
        assert_int_equal(load(&m, 0, 0, &err), ATS_E_INPUT);
        assert_says(err.text, "visible.h5", "\"alpha\"", "layer 3", "k is not finite", "head 1",
                    "row 17", "column 5");
        model_free(&m);
        model_make(&m);
        a = &m.tensors[0][0];
        plant(a->v, a->v_dtype, 20, 6, 0, 19, 0, bad[i]);
        assert_int_equal(load(&m, 0, 0, &err), ATS_E_INPUT);
        assert_says(err.text, "v is not finite", "head 0", "row 19", "column 0");
        model_free(&m);
        model_make(&m);
        a = &m.tensors[0][0];
        plant(a->q, a->q_dtype, MODEL_PROBES, 8, 3, 1, 2, bad[i]);
        assert_int_equal(load(&m, 0, 0, &err), ATS_E_INPUT);
        assert_says(err.text, "q is not finite", "head 3", "row 1", "column 2");
        model_free(&m);
    }
}

/* Behind window, segment and keep mask anything may be stored. */
static void test_hidden_garbage(void **state)
{
    (void)state;
    ats_err err;
    model m;
    model_make(&m);
    /* Layer 3 has a window of 9: keys 0 to 10 are out of reach of positions 22 and 23. */
    ats_attention *a = &m.tensors[0][0];
    for (int64_t row = 0; row <= 10; row++) plant(a->k, a->k_dtype, 20, 8, 0, row, row % 8, NAN);
    assert_ok(load(&m, 0, 0, &err), &err);
    /* Layer 10: segment 0 is key 0 alone; keep hides a key from both probes. */
    a = &m.tensors[0][1];
    plant(a->v, a->v_dtype, 20, 4, 1, 0, 0, INFINITY);
    plant(a->k, a->k_dtype, 20, 4, 1, 4, 3, NAN);
    a->keep[4] = a->keep[20 + 4] = 0;
    for (int64_t head = 0; head < 2; head++)
        for (int64_t probe = 0; probe < 2; probe++) a->bias[(head * 2 + probe) * 20 + 4] = INFINITY;
    assert_ok(load(&m, 0, 1, &err), &err);
    a->keep[20 + 4] = 1;
    assert_int_equal(load(&m, 0, 1, &err), ATS_E_INPUT);
    assert_says(err.text, "layer 10", "bias is inf", "probe 1", "key 4", "-inf where it hides");
    for (int64_t head = 0; head < 2; head++) a->bias[(head * 2 + 1) * 20 + 4] = NAN;
    assert_int_equal(load(&m, 0, 1, &err), ATS_E_INPUT);
    assert_says(err.text, "bias is nan");
    /* -inf hides its key, like every bias of -1e30 or less. */
    plant(a->k, a->k_dtype, 20, 4, 1, 4, 3, 0.5F);
    for (int64_t head = 0; head < 2; head++) a->bias[(head * 2 + 1) * 20 + 4] = -INFINITY;
    assert_ok(load(&m, 0, 1, &err), &err);
    plant(a->k, a->k_dtype, 20, 4, 1, 4, 3, NAN);
    for (int64_t head = 0; head < 2; head++) a->bias[(head * 2 + 1) * 20 + 4] = 0;
    assert_int_equal(load(&m, 0, 1, &err), ATS_E_INPUT);
    assert_says(err.text, "layer 10", "k is not finite", "head 1", "row 4", "column 3");
    model_free(&m);
}

static void test_probe_that_sees_nothing(void **state)
{
    (void)state;
    ats_err err;
    model m;
    model_make(&m);
    memset(m.tensors[1][1].keep + 7, 0, 7);
    assert_int_equal(load(&m, 1, 1, &err), ATS_E_INPUT);
    assert_says(err.text, "beta/2", "layer 10", "probe 1 (position 10)", "no key", "no sink");
    /* With a sink there is still a route. */
    const float sink[2] = {0, 0};
    m.layers[1].sink = sink;
    assert_ok(load(&m, 1, 1, &err), &err);
    model_free(&m);
}

static void test_visible_follows_the_contract(void **state)
{
    (void)state;
    model m;
    model_make(&m);
    const ats_sample *s = &m.samples[0];
    const ats_attention *a = m.tensors[0];
    /* window 9, probe 0 at position 22: keys at positions 14 to 22, that is 11 to 19. */
    for (int64_t key = 0; key < 20; key++) {
        assert_int_equal(ats_capture_visible(&m.layers[0], s, &a[0], 0, key), key >= 11);
        assert_int_equal(ats_capture_visible(&m.layers[2], s, &a[2], 1, key), key >= 1);
        assert_int_equal(ats_capture_visible(&m.layers[1], s, &a[1], 0, key),
                         key >= 1 && key % 3 != 0);
    }
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visible_garbage),
        cmocka_unit_test(test_hidden_garbage),
        cmocka_unit_test(test_probe_that_sees_nothing),
        cmocka_unit_test(test_visible_follows_the_contract),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
