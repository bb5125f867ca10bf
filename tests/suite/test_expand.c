#include "suite/fixture.h"

#define NEAR HEAD "  - name: near\n    kind: distractors\n    positions: overlay\n"

static void ids_are(const char *text, const char *const *ids)
{
    ats_suite *s = must_load(text);
    int64_t i = 0;
    for (; ids[i] != NULL && i < s->n_variants; i++) assert_string_equal(s->variants[i].id, ids[i]);
    assert_null(ids[i]);
    assert_int_equal(s->n_variants, i);
    ats_suite_free(s);
}

#define assert_ids(text, ...) ids_are((text), (const char *const[]){__VA_ARGS__, NULL})

static const ats_param *param(const ats_suite *s, int64_t variant, const char *name)
{
    const ats_variant *v = &s->variants[variant];
    const ats_family *family = s->perturbations[v->perturbation].family;
    return &v->params[ats_family_param(family, name)];
}

static void lists_multiply_with_the_first_key_slowest(void **state)
{
    (void)state;
    assert_ids(NEAR "    count: [1, 2]\n    payload: [zero, same]\n    control: false\n",
               "near/overlay/payload=zero,count=1#0", "near/overlay/payload=same,count=1#0",
               "near/overlay/payload=zero,count=2#0", "near/overlay/payload=same,count=2#0");
    assert_ids(NEAR "    payload: [zero, same]\n    count: [1, 2]\n    control: false\n",
               "near/overlay/payload=zero,count=1#0", "near/overlay/payload=zero,count=2#0",
               "near/overlay/payload=same,count=1#0", "near/overlay/payload=same,count=2#0");
}

static void twins_follow_their_treatment(void **state)
{
    (void)state;
    ats_suite *s = must_load(NEAR "    count: 4\n    replicates: 2\n");
    const char *const ids[] = {"near/overlay/count=4#0", "near/overlay/count=4#0~control",
                               "near/overlay/count=4#1", "near/overlay/count=4#1~control"};
    assert_int_equal(s->n_variants, 4);
    for (int64_t i = 0; i < 4; i++) {
        assert_string_equal(s->variants[i].id, ids[i]);
        assert_string_equal(s->variants[i].base_id, ids[i - i % 2]);
        assert_int_equal(s->variants[i].arm, i % 2 ? ATS_ARM_CONTROL : ATS_ARM_TREATMENT);
        assert_int_equal(s->variants[i].replicate, i / 2);
        assert_int_equal(s->variants[i].mode, ATS_MODE_OVERLAY);
    }
    ats_suite_free(s);
    /* A family without twins has none, whatever the default. */
    assert_ids(WARM, "warm/tau=2#0", "warm/tau=4#0");
}

static void groups_set_their_word_and_its_parameters(void **state)
{
    (void)state;
    ats_suite *s =
        must_load(NEAR "    source: [donor, {similar: {cosine: [0.5, 0.8], norm_ratio: 2}}, "
                       "{targeted: 1}]\n    placement: [before, {depth: 0.5}]\n    count: 1\n"
                       "    control: false\n");
    const char *const ids[] = {
        "near/overlay/source=donor,placement=before,count=1#0",
        "near/overlay/source=donor,depth=0.5,count=1#0",
        "near/overlay/cosine=0.5,norm_ratio=2,placement=before,count=1#0",
        "near/overlay/cosine=0.5,norm_ratio=2,depth=0.5,count=1#0",
        "near/overlay/cosine=0.8,norm_ratio=2,placement=before,count=1#0",
        "near/overlay/cosine=0.8,norm_ratio=2,depth=0.5,count=1#0",
        "near/overlay/margin=1,placement=before,count=1#0",
        "near/overlay/margin=1,depth=0.5,count=1#0",
    };
    assert_int_equal(s->n_variants, 8);
    for (int64_t i = 0; i < 8; i++) assert_string_equal(s->variants[i].id, ids[i]);
    assert_string_equal(param(s, 0, "source")->text, "donor");
    assert_false(param(s, 0, "cosine")->set);
    assert_false(param(s, 0, "norm_ratio")->set);
    assert_string_equal(param(s, 5, "source")->text, "similar");
    assert_near(param(s, 5, "cosine")->number, 0.8, 0);
    assert_near(param(s, 5, "norm_ratio")->number, 2, 0);
    assert_string_equal(param(s, 5, "basis")->text, "real");
    assert_string_equal(param(s, 5, "placement")->text, "depth");
    assert_near(param(s, 5, "depth")->number, 0.5, 0);
    assert_false(param(s, 4, "depth")->set);
    assert_string_equal(param(s, 6, "source")->text, "targeted");
    ats_suite_free(s);
}

static void defaults_fill_what_was_not_given(void **state)
{
    (void)state;
    ats_suite *s = must_load(NEAR "    count: 3\n");
    assert_near(param(s, 0, "count")->number, 3, 0);
    assert_string_equal(param(s, 0, "payload")->text, "donor");
    assert_near(param(s, 0, "free_zone")->number, 0, 0);
    assert_false(param(s, 0, "span")->set);
    assert_false(param(s, 0, "cosine")->set);
    ats_suite_free(s);
}

static void exclude_and_include_trim_and_add(void **state)
{
    (void)state;
    assert_ids(NEAR "    count: [1, 2, 4]\n    payload: [zero, same]\n    control: false\n"
                    "    exclude: [{count: [1, 2], payload: same}]\n"
                    "    include: [{count: 64, payload: opposed}, {positions: shift, count: 1}]\n",
               "near/overlay/payload=zero,count=1#0", "near/overlay/payload=zero,count=2#0",
               "near/overlay/payload=zero,count=4#0", "near/overlay/payload=same,count=4#0",
               "near/overlay/payload=opposed,count=64#0", "near/shift/payload=zero,count=1#0",
               "near/shift/payload=same,count=1#0");
    ats_err err;
    must_refuse(NEAR "    count: [1, 2]\n    exclude: [{count: 3}]\n", NULL, &err);
    assert_says(err.text, "s.yaml:7:15", "this exclude entry meets no cell of 'near'");
    must_refuse(NEAR "    count: [1, 2]\n    exclude: [{count: [1, 2]}]\n", NULL, &err);
    assert_says(err.text, "takes every variant of 'near' away");
    must_refuse(NEAR "    count: [1, 2]\n    include: [{count: 2}]\n", NULL, &err);
    assert_says(err.text, "variant 'near/overlay/count=2#0' is there twice");
    must_refuse(NEAR "    count: [1, 2]\n    exclude: [{cuont: 2}]\n", NULL, &err);
    assert_says(err.text, "did you mean 'count'?");
    must_refuse(NEAR "    count: [1, 2]\n    exclude: [{source: {similar: {}}}]\n", NULL, &err);
    assert_says(err.text, "a key of its own");
}

/* Ids stay when other families, other values or another order of keys come in. */
static void ids_are_stable(void **state)
{
    (void)state;
    ats_suite *a = must_load(NEAR "    count: 2\n    payload: zero\n");
    ats_suite *b = must_load("suite: other\nseed: 9\nperturbations:\n"
                             "  - {name: warm, kind: temperature, tau: 3}\n"
                             "  - {kind: distractors, name: near, payload: [same, zero], "
                             "count: [2, 1], positions: [shift, overlay]}\n");
    int64_t found = 0;
    for (int64_t i = 0; i < b->n_variants; i++)
        found += strcmp(b->variants[i].id, a->variants[0].id) == 0;
    assert_int_equal(found, 1);
    ats_suite_free(a);
    ats_suite_free(b);
}

static void wrong_kinds_of_keys_are_told(void **state)
{
    (void)state;
    ats_err err;
    must_refuse(NEAR "    count: 1\n    cosine: 0.5\n", NULL, &err);
    assert_says(err.text, "s.yaml:7:5",
                "'cosine' is written inside 'source': {similar: {cosine: ...}}");
    must_refuse(NEAR "    count: 1\n    depth: 0.5\n", NULL, &err);
    assert_says(err.text, "'depth' is written inside 'placement': {depth: ...}");
    must_refuse(NEAR "    count: []\n", NULL, &err);
    assert_says(err.text, "an empty list leaves no variant");
    must_refuse(NEAR "    count: [1, 1]\n", NULL, &err);
    assert_says(err.text, "a list repeats a value");
    must_refuse(NEAR "    payload: zero\n", NULL, &err);
    assert_says(err.text, "lacks the key 'count'");
    must_refuse(NEAR "    count: 0\n", NULL, &err);
    assert_says(err.text, "0 is outside 1 to");
    must_refuse(NEAR "    count: 1e3\n", NULL, &err);
    assert_says(err.text, "digits alone: 1000");
    must_refuse(NEAR "    count: 1\n    source: {similar: {cosine: 1.5}}\n", NULL, &err);
    assert_says(err.text, "1.5 is outside -1 to 1");
    must_refuse(NEAR "    count: 1\n    source: {similar: {cosinus: 1}}\n", NULL, &err);
    assert_says(err.text, "unknown key 'cosinus' in 'similar'; did you mean 'cosine'?");
    must_refuse(NEAR "    count: 1\n    source: {donor: {cosine: 1}}\n", NULL, &err);
    assert_says(err.text, "'donor' takes no parameters");
    must_refuse(NEAR "    count: 1\n    source: similar\n", NULL, &err);
    assert_says(err.text, "s.yaml:3:5", "near: ", "needs `cosine`");
    must_refuse(HEAD "  - {kind: temperature, tau: 1, positions: overlay}\n", NULL, &err);
    assert_says(err.text, "'positions' does not apply");
    must_refuse(HEAD "  - {kind: temperature, tau: 1, control: true}\n", NULL, &err);
    assert_says(err.text, "has no control twin");
    must_refuse(HEAD "  - {name: a/b, kind: temperature, tau: 1}\n", NULL, &err);
    assert_says(err.text, "holds '/'");
    must_refuse("suite: t\nperturbations: []\n", NULL, &err);
    assert_says(err.text, "a suite without cases tests nothing");
}

/* RC-23: two cases with one id. */
static void two_perturbations_of_one_name_are_refused(void **state)
{
    (void)state;
    ats_err err;
    must_refuse(WARM "  - {kind: noise, sigma: 1}\n  - {name: warm, kind: temperature, tau: 3}\n",
                NULL, &err);
    assert_says(err.text, "s.yaml:5:12", "perturbation 'warm' is there twice: lines 3 and 5");
    must_refuse(HEAD "  - {kind: temperature, tau: 2}\n  - {kind: temperature, tau: 3}\n", NULL,
                &err);
    assert_says(err.text, "lines 3 and 4", "give each a 'name'");
}

static void too_many_variants_are_refused_before_memory_is_taken(void **state)
{
    (void)state;
    char text[4096];
    int used = snprintf(text, sizeof text, "%s", NEAR "    replicates: 10000\n    count: [");
    for (int i = 1; i <= 200; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d", i > 1 ? ", " : "", i);
    snprintf(text + used, sizeof text - (size_t)used, "]\n    payload: [zero, same]\n");
    ats_err err;
    must_refuse(text, NULL, &err);
    assert_says(err.text, "more than 100,000 variants");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_multiply_with_the_first_key_slowest),
        cmocka_unit_test(twins_follow_their_treatment),
        cmocka_unit_test(groups_set_their_word_and_its_parameters),
        cmocka_unit_test(defaults_fill_what_was_not_given),
        cmocka_unit_test(exclude_and_include_trim_and_add),
        cmocka_unit_test(ids_are_stable),
        cmocka_unit_test(wrong_kinds_of_keys_are_told),
        cmocka_unit_test(two_perturbations_of_one_name_are_refused),
        cmocka_unit_test(too_many_variants_are_refused_before_memory_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
