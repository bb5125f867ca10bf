#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "perturb/cache.h"
#include "perturb/script.h"
#include "perturb/variant.h"

static tiny worlds[4];
static ats_build_cache cache;

static int setup(void **state)
{
    (void)state;
    tiny_options o[4] = {tiny_defaults(), tiny_defaults(), tiny_defaults(), tiny_defaults()};
    o[1].layout = ATS_ROPE_INTERLEAVED;
    o[1].dtype = ATS_BF16;
    o[1].n_q_heads = 2;
    o[2].layout = ATS_ROPE_NONE;
    o[2].alibi = true;
    o[2].softcap = 30;
    o[3].window = 50;
    o[3].dtype = ATS_F16;
    o[3].sink = true;
    for (int i = 0; i < 4; i++) tiny_make(&worlds[i], &o[i]);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) tiny_free(&worlds[i]);
    ats_build_cache_fini(&cache);
    return 0;
}

static void every_family_stands_in_the_table_once(void **state)
{
    (void)state;
    static const char *const kinds[] = {
        "distractors",  "duplicates",  "superseded",   "high_norm",   "mask_window",
        "payload_swap", "key_replace", "query_rotate", "temperature", "normalise",
        "noise",        "kv_evict",    "combine"};
    int64_t count = 0;
    const ats_family *const *families = ats_families(&count);
    assert_int_equal(count, 13);
    for (int64_t i = 0; i < count; i++) {
        assert_string_equal(families[i]->kind, kinds[i]);
        assert_ptr_equal(ats_family_find(kinds[i]), families[i]);
        assert_non_null(families[i]->layout);
        assert_int_equal(families[i]->has_control, i < 5 || i == 11);
        assert_int_equal(families[i]->has_positions, i < 4);
    }
    assert_null(ats_family_find("distractor"));
}

static void check_param(const ats_family *family, const ats_param_def *def, int64_t index)
{
    const bool number = def->type == ATS_PARAM_INT || def->type == ATS_PARAM_REAL;
    assert_int_equal(ats_family_param(family, def->name), index);
    assert_non_null(def->unit);
    assert_non_null(def->doc);
    assert_true(def->doc[strlen(def->doc) - 1] == '.');
    if (number) {
        assert_true(def->min < def->max);
        if (!def->required && !isnan(def->number))
            assert_true(def->number >= def->min && def->number <= def->max);
    }
    if (def->type == ATS_PARAM_WORD) {
        bool found = def->text == NULL;
        assert_non_null(def->words);
        for (int64_t i = 0; def->words[i] != NULL; i++)
            found = found || strcmp(def->words[i], def->text) == 0;
        assert_true(found);
    }
    if (def->group != NULL) {
        const int64_t group = ats_family_param(family, def->group);
        assert_true(group >= 0);
        bool found = false;
        for (int64_t i = 0; family->params[group].words[i] != NULL; i++)
            found = found || strcmp(family->params[group].words[i], def->group_word) == 0;
        assert_true(found);
    }
}

static void parameter_tables_are_consistent(void **state)
{
    (void)state;
    int64_t count = 0;
    const ats_family *const *families = ats_families(&count);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t p = 0; p < families[i]->n_params; p++)
            check_param(families[i], &families[i]->params[p], p);
        if (families[i]->dose != NULL)
            assert_true(ats_family_param(families[i], families[i]->dose) >= 0);
    }
}

/* A random legal value for one parameter; small enough for the tiny sample. */
static void draw_param(variant *v, const ats_param_def *def, ats_rng *rng)
{
    int64_t words = 0;
    switch (def->type) {
    case ATS_PARAM_WORD:
        while (def->words[words] != NULL) words++;
        variant_word(v, def->name, def->words[ats_rng_below(rng, words)]);
        break;
    case ATS_PARAM_INT:
        variant_number(v, def->name, def->min + (double)ats_rng_below(rng, 4));
        break;
    case ATS_PARAM_REAL:
        variant_number(v, def->name,
                       fmax(def->min, -2) +
                           ats_rng_unit(rng) * (fmin(def->max, 2) - fmax(def->min, -2)));
        break;
    case ATS_PARAM_TEXT:
        break;
    }
}

/* Own walk over the script: rows named once, side rows used once, positions legal. */
static void check_script(const variant *v)
{
    const ats_edit *edit = &v->built.edit;
    const ats_sample *sample = v->build.sample;
    uint8_t base[256] = {0}, side[4096] = {0};
    assert_true(edit->side.count <= 4096);
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        const int64_t n = s->stop - s->start;
        assert_true(n > 0);
        for (int64_t j = 0; j < n; j++) {
            if (s->kind != ATS_SEG_ROWS) base[s->start + j]++;
            if (s->kind == ATS_SEG_ROWS || s->kind == ATS_SEG_SWAP) side[s->row + j]++;
            if (s->kind == ATS_SEG_KEEP)
                assert_true(sample->position[s->start + j] + s->delta >= 0);
            if (s->kind == ATS_SEG_SWAP)
                assert_int_equal(edit->side.position[s->row + j], sample->position[s->start + j]);
            if (s->kind == ATS_SEG_HIDE) assert_true(s->start + j < 197);
        }
    }
    for (int64_t i = 0; i < sample->n_keys; i++) assert_int_equal(base[i], 1);
    for (int64_t j = 0; j < edit->side.count; j++) {
        assert_int_equal(side[j], 1);
        /* Every probe may see what was inserted before it. */
        assert_true(edit->side.position[j] >= 0);
        if (v->build.family->has_positions)
            assert_true(edit->side.position[j] <= sample->probes[0].position + edit->query_delta);
    }
    if (edit->side.count > 0 && v->build.attention != NULL) {
        assert_non_null(edit->side.k);
        assert_non_null(edit->side.v);
        assert_int_equal(v->built.realised.rows, edit->side.count);
    }
}

static void assert_same_bits(const void *a, const void *b, int64_t count, size_t size)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL) assert_memory_equal(a, b, (size_t)count * size);
}

/* The same build with a cache that other heads and layers have used before: the same bits. */
static void check_cached(variant *v)
{
    const ats_built plain = v->built;
    const ats_edit *a = &plain.edit, *b = &v->built.edit;
    v->build.cache = &cache;
    assert_ok(ats_perturb_build(&v->build, &v->built, &v->err), &v->err);
    assert_int_equal(a->side.count, b->side.count);
    assert_int_equal(a->n_segments, b->n_segments);
    assert_same_bits(a->side.position, b->side.position, a->side.count, sizeof(int64_t));
    assert_same_bits(a->side.k, b->side.k, a->side.count * v->build.layer->d_qk, sizeof(float));
    assert_same_bits(a->side.v, b->side.v, a->side.count * v->build.layer->d_v, sizeof(float));
    assert_same_bits(a->q, b->q,
                     v->build.layer->n_q_heads / v->build.layer->n_kv_heads *
                         v->build.sample->n_probes * v->build.layer->d_qk,
                     sizeof(float));
    assert_memory_equal(&plain.realised.cosine, &v->built.realised.cosine, 3 * sizeof(double));
}

static void one_random_variant(const ats_family *family, ats_position_mode mode, uint64_t seed,
                               int64_t *done)
{
    ats_rng rng = ats_rng_stream(seed, family->kind, "", (int64_t)mode, 0, "families");
    variant v;
    variant_begin(&v, &worlds[seed % 4], family->kind, mode);
    for (int64_t p = 0; p < family->n_params; p++) draw_param(&v, &family->params[p], &rng);
    if (family->check != NULL && family->check(v.params, mode, &v.err) != ATS_OK) {
        assert_says(v.err.text, family->kind);
        variant_free(&v);
        return;
    }
    v.build.arm = ats_rng_below(&rng, 2) == 0 ? ATS_ARM_TREATMENT : ATS_ARM_CONTROL;
    v.build.kv_head = ats_rng_below(&rng, 2);
    if (!family->has_control) v.build.arm = ATS_ARM_TREATMENT;
    const ats_code rc = ats_perturb_build(&v.build, &v.built, &v.err);
    if (rc != ATS_OK) {
        /* What random numbers may ask for and cannot have. */
        assert_int_equal(rc, ATS_E_SUITE);
        assert_says(v.err.text, "test/variant#0", "s00", "layer 5");
    } else if (!v.built.skipped) {
        check_script(&v);
        check_cached(&v);
        *done += 1;
    }
    variant_free(&v);
}

static void scripts_are_valid_for_every_family_mode_and_arm(void **state)
{
    (void)state;
    int64_t count = 0;
    const ats_family *const *families = ats_families(&count);
    for (int64_t f = 0; f < count; f++) {
        const bool modes = families[f]->has_positions;
        if (strcmp(families[f]->kind, "combine") == 0) continue; /* needs two parts */
        for (ats_position_mode mode = modes ? ATS_MODE_OVERLAY : ATS_MODE_NONE;
             mode <= (modes ? ATS_MODE_MOVE : ATS_MODE_NONE); mode++) {
            int64_t done = 0;
            for (uint64_t seed = 0; seed < 200; seed++)
                one_random_variant(families[f], mode, seed, &done);
            if (done < 8)
                fail_msg("%s in %s: only %lld of 200 random variants were built", families[f]->kind,
                         ats_mode_name(mode), (long long)done);
        }
    }
}

/* The geometry without tensors is the geometry with them, for any key head. */
static void layout_needs_no_tensors(void **state)
{
    (void)state;
    static const char *const kinds[] = {"distractors", "duplicates", "superseded", "high_norm"};
    static const char *const dose[] = {"count", "copies", "versions", "multiple"};
    for (int k = 0; k < 4; k++)
        for (ats_position_mode mode = ATS_MODE_OVERLAY; mode <= ATS_MODE_SHIFT; mode++) {
            const char *text[2] = {NULL, NULL};
            variant v[2];
            for (int i = 0; i < 2; i++) {
                variant_begin(&v[i], &worlds[0], kinds[k], mode);
                variant_number(&v[i], dose[k], 3);
                if (i == 0) v[i].build.attention = NULL;
                v[i].build.kv_head = i;
                variant_build(&v[i]);
                assert_near(v[i].built.dose, 3, 0);
                assert_ok(ats_edit_print(&v[i].arena, &v[i].built.edit, 0, &text[i], &v[i].err),
                          &v[i].err);
            }
            assert_string_equal(text[0], text[1]);
            assert_int_equal(v[0].built.edit.side.count, v[1].built.edit.side.count);
            assert_memory_equal(v[0].built.edit.side.position, v[1].built.edit.side.position,
                                (size_t)v[0].built.edit.side.count * sizeof(int64_t));
            variant_free(&v[0]);
            variant_free(&v[1]);
        }
}

static void modes_have_names(void **state)
{
    (void)state;
    for (ats_position_mode mode = ATS_MODE_OVERLAY; mode <= ATS_MODE_MOVE; mode++) {
        ats_position_mode back = ATS_MODE_NONE;
        assert_true(ats_mode_parse(ats_mode_name(mode), &back));
        assert_int_equal(back, mode);
    }
    ats_position_mode none = ATS_MODE_MOVE;
    assert_false(ats_mode_parse("none", &none));
    assert_false(ats_mode_parse("Overlay", &none));
}

/* docs/perturbations.md ends with what the tables say. */
static void the_documentation_holds_the_tables(void **state)
{
    (void)state;
    static char page[1 << 16];
    ats_arena arena = {.used = 0};
    ats_err err;
    const char *text = NULL;
    FILE *file = fopen(ATS_SOURCE_DIR "/docs/perturbations.md", "rb");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    assert_ok(ats_families_markdown(&arena, &text, &err), &err);
    const char *start = strstr(page, "### `distractors`");
    assert_non_null(start);
    assert_true(strlen(start) + 1 >= strlen(text));
    assert_memory_equal(start, text, strlen(text) - 1);
    ats_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_stands_in_the_table_once),
        cmocka_unit_test(parameter_tables_are_consistent),
        cmocka_unit_test(scripts_are_valid_for_every_family_mode_and_arm),
        cmocka_unit_test(layout_needs_no_tensors),
        cmocka_unit_test(modes_have_names),
        cmocka_unit_test(the_documentation_holds_the_tables),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
