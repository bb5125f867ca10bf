#include "lists.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "kernels/device_load.h"
#include "support/check.h"

enum {
    KEYS = 1400, /* 22 pieces: two parts of a list */
    LEAF = 64,
    PIECES = (KEYS + LEAF - 1) / LEAF,
    ROWS = 37,
    LANES = 48,
    WIDTH = 16,
    DISTINCT = 97, /* keys that repeat: equal scores within and across pieces */
    ABOVE = 3
};

static float uniform(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return (float)(*state >> 8) * 0x1p-23F - 1.0F;
}

/* Everything that a pass over the problem reads or writes. */
typedef struct scene {
    uint16_t k[KEYS * WIDTH], v[KEYS * WIDTH];
    int64_t position[KEYS], low[LANES], high[LANES];
    float q[ROWS * WIDTH], q_at[LANES];
    float norm[KEYS], log_norm[KEYS];
    uint8_t bad[KEYS];
    float z[KEYS * LANES], logits[KEYS * LANES]; /* where they go; what they are */
    float *z_at[PIECES];
    float above[ABOVE * LANES];
    int64_t counts[ABOVE * LANES];
    ats_device_problem problem;
    ats_device_view view;
    ats_device_piece pieces[PIECES];
    int64_t limit;
    int64_t found[2][ROWS], key[2][ROWS][4 * ATS_DEVICE_BEST];
    float score[2][ROWS][4 * ATS_DEVICE_BEST];
} scene;

/* Rows that see all keys, every other one a window, one a handful, one nothing; values that are 0.
 */
static void fill(scene *s, int64_t limit)
{
    uint32_t state = 7;
    memset(s, 0, sizeof *s);
    for (int i = 0; i < KEYS * WIDTH; i++) {
        s->k[i] =
            i < DISTINCT * WIDTH ? ats_f32_to_bf16(uniform(&state)) : s->k[i - DISTINCT * WIDTH];
        s->v[i] = i / WIDTH % 11 == 3 ? 0 : ats_f32_to_bf16(uniform(&state));
    }
    for (int i = 0; i < KEYS; i++) s->position[i] = i;
    for (int i = 0; i < ROWS * WIDTH; i++)
        s->q[i] = ats_bf16_to_f32(ats_f32_to_bf16(uniform(&state)));
    for (int i = 0; i < LANES; i++) {
        s->low[i] = i % 2 == 0 ? 0 : 20 * i;
        s->high[i] = i % 2 == 0 ? KEYS : 20 * i + 9 * i;
    }
    s->low[4] = 700; /* a handful */
    s->high[4] = 702;
    s->high[6] = -1; /* nothing */
    for (int i = 0; i < LANES; i++) {
        s->above[i] = -INFINITY;
        s->above[LANES + i] = 0.1F;
        s->above[2 * LANES + i] = INFINITY;
    }
    s->limit = limit;
    s->problem = (ats_device_problem){.n_keys = KEYS,
                                      .d_qk = WIDTH,
                                      .d_v = WIDTH,
                                      .rows = ROWS,
                                      .lanes = LANES,
                                      .width = WIDTH,
                                      .leaf = LEAF,
                                      .tile = LANES,
                                      .n_tiles = 1,
                                      .k_type = ATS_DEVICE_BF16,
                                      .v_type = ATS_DEVICE_BF16,
                                      .k = s->k,
                                      .v = s->v,
                                      .position = s->position,
                                      .best = limit};
    s->view = (ats_device_view){.q = s->q,
                                .q_at = s->q_at,
                                .low = s->low,
                                .high = s->high,
                                .scale = 1,
                                .inverse_temperature = 1};
    for (int i = 0; i < PIECES; i++) {
        s->z_at[i] = s->z + i * LEAF * LANES;
        s->pieces[i] = (ats_device_piece){.first = i * LEAF,
                                          .keys = i + 1 < PIECES ? LEAF : KEYS - i * LEAF,
                                          .at = -1,
                                          .z = &s->z_at[i]};
    }
}

static void take(void *ctx, int payload, int64_t row, int64_t count, int64_t stride, const float *z,
                 const int32_t *place, int64_t first)
{
    scene *s = ctx;
    for (int64_t i = 0; i < count && place[i * stride] >= 0; i++) {
        const int64_t at = s->found[payload][row]++, key = first + place[i * stride];
        assert_true(at < 4 * ATS_DEVICE_BEST && key < KEYS);
        assert_memory_equal(&z[i * stride], &s->logits[key * LANES + row], sizeof *z);
        s->key[payload][row][at] = key;
        s->score[payload][row][at] = z[i * stride] + (payload != 0 ? s->log_norm[key] : 0.0F);
    }
}

typedef struct ranked {
    float score;
    int64_t key;
} ranked;

static int best_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* The best of the parts are the best of all logits. */
static void check_row(const scene *s, int payload, int64_t row)
{
    static ranked all[KEYS], parts[4 * ATS_DEVICE_BEST];
    int64_t n = 0;
    const int64_t found = s->found[payload][row];
    for (int64_t key = 0; key < KEYS; key++) {
        const float z = s->logits[key * LANES + row], x = payload != 0 ? z + s->log_norm[key] : z;
        if (x > -INFINITY) all[n++] = (ranked){x, key};
    }
    for (int64_t i = 0; i < found; i++)
        parts[i] = (ranked){s->score[payload][row][i], s->key[payload][row][i]};
    qsort(all, (size_t)n, sizeof *all, best_first);
    qsort(parts, (size_t)found, sizeof *parts, best_first);
    const int64_t expected = n < s->limit ? n : s->limit;
    assert_true(found >= expected);
    for (int64_t i = 0; i < expected; i++) {
        assert_int_equal(parts[i].key, all[i].key);
        assert_true(parts[i].score == all[i].score);
    }
}

static void check_counts(const scene *s)
{
    for (int64_t i = 0; i < ABOVE; i++)
        for (int64_t row = 0; row < ROWS; row++) {
            int64_t expected = 0;
            for (int64_t key = 0; key < KEYS; key++)
                expected += s->logits[key * LANES + row] > s->above[i * LANES + row];
            assert_int_equal(s->counts[i * LANES + row], expected);
        }
}

/* With all logits on their way, then with those of some pieces: the others stay as they were. */
static void run(scene *s, const ats_device_api *api)
{
    ats_device_error error = {""};
    ats_device *device = NULL;
    const ats_device_best best = {s, take};
    const ats_device_counts counts = {ABOVE, s->above, s->counts};
    const ats_device_pass all = {
        .n_views = 1, .views = &s->view, .n_pieces = PIECES, .pieces = s->pieces};
    ats_device_pass some = all;
    static const float nothing[LEAF * LANES];
    some.best = &best;
    some.counts = &counts;
    assert_int_equal(
        api->open(ATS_DEVICE_FUSED, &s->problem, 1, s->norm, s->log_norm, s->bad, &device, &error),
        ATS_DEVICE_OK);
    assert_int_equal(api->pass(device, 0, &all, &error), ATS_DEVICE_OK);
    memcpy(s->logits, s->z, sizeof s->logits);
    memset(s->z, 0, sizeof s->z);
    for (int i = 0; i < PIECES; i++)
        if (i % 5 >= 2) s->pieces[i].z = NULL;
    assert_int_equal(api->pass(device, 0, &some, &error), ATS_DEVICE_OK);
    for (int i = 0; i < PIECES; i++) {
        const float *want = i % 5 < 2 ? s->logits + i * LEAF * LANES : nothing;
        assert_memory_equal(s->z_at[i], want, (size_t)(s->pieces[i].keys * LANES) * sizeof *want);
    }
    api->close(device);
    for (int64_t row = 0; row < ROWS; row++)
        for (int payload = 0; payload < 2; payload++) check_row(s, payload, row);
    check_counts(s);
}

void test_lists(void **state)
{
    (void)state;
    static const int64_t LIMITS[] = {1, 14, ATS_DEVICE_BEST};
    static scene s;
    const ats_device_api *api;
    assert_int_equal(ats_device_load(&api, NULL), ATS_OK);
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        fill(&s, LIMITS[i]);
        run(&s, api);
    }
}
