#include "golden/load_fixture.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "kernels/stats.h"
#include "support/check.h"

#define NEW(arena, count, pointer)                                                                 \
    do {                                                                                           \
        ats_err new_err = {.code = ATS_OK};                                                        \
        assert_ok(ATS_NEW0((arena), (count), (pointer), &new_err), &new_err);                      \
    } while (0)

static json_t *field(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    if (value == NULL) fail_msg("the fixture has no \"%s\"", name);
    return value;
}

static double number(const json_t *value)
{
    if (json_is_number(value)) return json_number_value(value);
    const char *text = json_string_value(value);
    assert_non_null(text);
    if (strcmp(text, "nan") == 0) return (double)NAN;
    assert_true(strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0);
    return text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
}

static int64_t integer(const json_t *object, const char *name)
{
    const json_t *value = field(object, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static double real(const json_t *object, const char *name) { return number(field(object, name)); }

static int64_t length(const json_t *object, const char *name)
{
    return (int64_t)json_array_size(field(object, name));
}

static double at(const json_t *object, const char *name, int64_t i)
{
    return number(json_array_get(field(object, name), (size_t)i));
}

/* The named array, which must have `count` elements, as floats, int64 or int32. */
static float *floats(ats_arena *arena, const json_t *object, const char *name, int64_t count)
{
    float *out = NULL;
    assert_int_equal(length(object, name), count);
    NEW(arena, count, &out);
    for (int64_t i = 0; i < count; i++) out[i] = (float)at(object, name, i);
    return out;
}

static int64_t *integers(ats_arena *arena, const json_t *object, const char *name, int64_t count)
{
    int64_t *out = NULL;
    assert_int_equal(length(object, name), count);
    NEW(arena, count, &out);
    for (int64_t i = 0; i < count; i++) out[i] = (int64_t)at(object, name, i);
    return out;
}

/* k or v: words of 16 bits, or floats. */
static const void *stored(ats_arena *arena, const json_t *doc, const char *name, ats_dtype dtype,
                          int64_t count)
{
    if (dtype == ATS_F32) return floats(arena, doc, name, count);
    uint16_t *words = NULL;
    assert_int_equal(length(doc, name), count);
    NEW(arena, count, &words);
    for (int64_t i = 0; i < count; i++) words[i] = (uint16_t)at(doc, name, i);
    return words;
}

static ats_contract load_contract(ats_arena *arena, const json_t *doc)
{
    ats_contract c = {.scale = real(doc, "scale"),
                      .softcap = real(doc, "softcap"),
                      .temperature = real(doc, "temperature"),
                      .window = integer(doc, "window"),
                      .chunk = integer(doc, "chunk"),
                      .causal = json_is_true(field(doc, "causal"))};
    const char *layout = json_string_value(field(doc, "rope"));
    if (strcmp(layout, "none") == 0) return c;
    double *inv_freq = NULL;
    c.rope.layout = strcmp(layout, "half") == 0 ? ATS_ROPE_HALF : ATS_ROPE_INTERLEAVED;
    c.rope.pairs = length(doc, "inv_freq");
    NEW(arena, c.rope.pairs, &inv_freq);
    for (int64_t i = 0; i < c.rope.pairs; i++) inv_freq[i] = at(doc, "inv_freq", i);
    c.rope.inv_freq = inv_freq;
    return c;
}

/* A number per head, repeated for every probe. */
static const float *per_head(ats_arena *arena, const json_t *doc, const char *name,
                             const ats_problem *p)
{
    float *out = NULL;
    NEW(arena, p->n_rows, &out);
    for (int64_t row = 0; row < p->n_rows; row++)
        out[row] = (float)at(doc, name, row / p->n_probes);
    return out;
}

static void load_masks(ats_arena *arena, const json_t *doc, ats_problem *p)
{
    if (json_object_get(doc, "keep") != NULL) {
        uint8_t *keep = NULL;
        NEW(arena, p->n_probes * p->n_keys, &keep);
        for (int64_t i = 0; i < p->n_probes * p->n_keys; i++) keep[i] = (uint8_t)at(doc, "keep", i);
        p->keep = keep;
    }
    if (json_object_get(doc, "key_segment") != NULL) {
        int32_t *keys = NULL, *queries = NULL;
        NEW(arena, p->n_keys, &keys);
        NEW(arena, p->n_rows, &queries);
        for (int64_t i = 0; i < p->n_keys; i++) keys[i] = (int32_t)at(doc, "key_segment", i);
        for (int64_t row = 0; row < p->n_rows; row++)
            queries[row] = (int32_t)at(doc, "q_segment", row % p->n_probes);
        p->key_segment = keys;
        p->q_segment = queries;
    }
}

static void load_regions(ats_arena *arena, const json_t *doc, ats_problem *p)
{
    ats_region *regions = NULL;
    p->n_regions = length(doc, "regions");
    NEW(arena, p->n_regions, &regions);
    for (int64_t g = 0; g < p->n_regions; g++) {
        const json_t *list = json_array_get(field(doc, "regions"), (size_t)g);
        ats_range *ranges = NULL;
        regions[g].n_ranges = (int64_t)json_array_size(list);
        NEW(arena, regions[g].n_ranges, &ranges);
        for (int64_t i = 0; i < regions[g].n_ranges; i++) {
            const json_t *pair = json_array_get(list, (size_t)i);
            ranges[i].start = json_integer_value(json_array_get(pair, 0));
            ranges[i].stop = json_integer_value(json_array_get(pair, 1));
        }
        regions[g].ranges = ranges;
    }
    p->regions = regions;
}

static void load_problem(ats_arena *arena, const json_t *doc, ats_problem *out)
{
    ats_problem p = {.contract = load_contract(arena, doc),
                     .n_keys = integer(doc, "n_keys"),
                     .d_qk = integer(doc, "d_qk"),
                     .d_v = integer(doc, "d_v"),
                     .n_probes = integer(doc, "probes"),
                     .top_k = integer(doc, "top_k")};
    ats_dtype dtype;
    assert_true(ats_dtype_parse(json_string_value(field(doc, "dtype")), &dtype));
    p.k_dtype = p.v_dtype = dtype;
    p.n_rows = p.n_probes * integer(doc, "heads");
    p.q = floats(arena, doc, "q", p.n_rows * p.d_qk);
    p.k = stored(arena, doc, "k", dtype, p.n_keys * p.d_qk);
    p.v = stored(arena, doc, "v", dtype, p.n_keys * p.d_v);
    p.key_pos = integers(arena, doc, "key_pos", p.n_keys);
    int64_t *q_pos = NULL;
    NEW(arena, p.n_rows, &q_pos);
    for (int64_t row = 0; row < p.n_rows; row++)
        q_pos[row] = (int64_t)at(doc, "q_pos", row % p.n_probes);
    p.q_pos = q_pos;
    if (json_object_get(doc, "sink") != NULL) p.sink = per_head(arena, doc, "sink", &p);
    if (json_object_get(doc, "alibi") != NULL) p.alibi_slope = per_head(arena, doc, "alibi", &p);
    load_masks(arena, doc, &p);
    load_regions(arena, doc, &p);
    *out = p;
}

static ats_segment load_segment(const json_t *entry)
{
    const char *kind = json_string_value(json_array_get(entry, 0));
    const int64_t a = json_integer_value(json_array_get(entry, 1));
    const int64_t b = json_integer_value(json_array_get(entry, 2));
    const int64_t fourth = json_integer_value(json_array_get(entry, 3));
    if (strcmp(kind, "keep") == 0)
        return (ats_segment){.kind = ATS_SEG_KEEP, .start = a, .stop = b, .delta = fourth};
    if (strcmp(kind, "hide") == 0)
        return (ats_segment){.kind = ATS_SEG_HIDE, .start = a, .stop = b};
    if (strcmp(kind, "rows") == 0)
        return (ats_segment){.kind = ATS_SEG_ROWS, .stop = b - a, .row = a};
    assert_string_equal(kind, "swap");
    const char *what = json_string_value(json_array_get(entry, 4));
    return (ats_segment){.kind = ATS_SEG_SWAP,
                         .start = a,
                         .stop = b,
                         .row = fourth,
                         .swap_key = strcmp(what, "value") != 0,
                         .swap_value = strcmp(what, "key") != 0};
}

static void load_edit(ats_arena *arena, const json_t *doc, const ats_problem *p, ats_edit *out)
{
    ats_segment *segments = NULL;
    const json_t *side = field(doc, "side");
    const int64_t n = length(doc, "script"), rows = length(side, "position");
    NEW(arena, n, &segments);
    for (int64_t i = 0; i < n; i++)
        segments[i] = load_segment(json_array_get(field(doc, "script"), (size_t)i));
    *out = (ats_edit){.n_segments = n,
                      .segments = segments,
                      .side = {.count = rows,
                               .k = floats(arena, side, "k", rows * p->d_qk),
                               .v = floats(arena, side, "v", rows * p->d_v),
                               .position = integers(arena, side, "position", rows)},
                      .query_delta = integer(doc, "query_delta"),
                      .temperature = real(doc, "temperature"),
                      .scale = real(doc, "scale")};
    if (length(doc, "q") > 0) out->q = floats(arena, doc, "q", p->n_rows * p->d_qk);
}

/* Every array of the statistics, by the name of its field. */
static void load_stats(ats_arena *arena, const json_t *expected, const ats_problem *p, bool pair,
                       ats_stats *out)
{
    ats_err err = {.code = ATS_OK};
    ats_stats_array arrays[ATS_STATS_ARRAYS];
    assert_ok(ats_stats_new(arena, p, pair, out, &err), &err);
    const int64_t count = ats_stats_list(p, out, pair, arrays);
    for (int64_t i = 0; i < count; i++) {
        const int64_t elements = p->n_rows * arrays[i].per_row;
        assert_int_equal(length(expected, arrays[i].name), elements);
        for (int64_t j = 0; j < elements; j++) {
            const double x = at(expected, arrays[i].name, j);
            if (arrays[i].type == ATS_ARRAY_F64) ((double *)*arrays[i].place)[j] = x;
            if (arrays[i].type == ATS_ARRAY_F32) ((float *)*arrays[i].place)[j] = (float)x;
            if (arrays[i].type == ATS_ARRAY_I64) ((int64_t *)*arrays[i].place)[j] = (int64_t)x;
        }
    }
}

void fixture_load(ats_arena *arena, const char *path, fixture *out)
{
    json_error_t error;
    json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (doc == NULL) fail_msg("%s:%d: %s", path, error.line, error.text);
    const int64_t n = length(doc, "variants");
    load_problem(arena, doc, &out->problem);
    out->expected = (stats_set){.problem = &out->problem, .n_variants = n};
    NEW(arena, n, &out->edits);
    NEW(arena, n, &out->names);
    NEW(arena, n, &out->expected.variants);
    load_stats(arena, field(doc, "expected"), &out->problem, false, &out->expected.base);
    for (int64_t i = 0; i < n; i++) {
        const json_t *variant = json_array_get(field(doc, "variants"), (size_t)i);
        load_edit(arena, variant, &out->problem, &out->edits[i]);
        load_stats(arena, field(variant, "expected"), &out->problem, true,
                   &out->expected.variants[i]);
        assert_int_equal(ats_arena_strdup(arena, json_string_value(field(variant, "name")),
                                          &out->names[i], NULL),
                         ATS_OK);
    }
    json_decref(doc);
}
