#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perturb/families.h"
#include "perturb/mask.h"
#include "perturb/observe.h"
#include "perturb/params.h"
#include "perturb/target.h"

static const char *const words_policy[] = {"recent", "sink_recent", "heavy_hitter", "every_block",
                                           NULL};
static const char *const words_observe[] = {"all", "earlier", NULL};

static const ats_param_def params[] = {
    {.name = "policy",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "recent: the last rows; sink_recent: the first rows and the last (StreamingLLM); "
            "heavy_hitter: the rows of most accumulated weight and the last (H2O), for each key "
            "head; every_block: whole blocks at equal distances.",
     .required = true,
     .words = words_policy},
    {.name = "budget",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Share of the rows before the first probe that stays in the cache.",
     .required = true,
     .min = 0,
     .max = 1},
    {.name = "sinks",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "sink_recent: first rows that stay, within the budget.",
     .number = 4,
     .min = 0,
     .max = ATS_ROWS_MAX},
    {.name = "recent",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "heavy_hitter: share of the budget that goes to the last rows.",
     .number = 0.5,
     .min = 0,
     .max = 1},
    {.name = "observe",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "heavy_hitter: weights of all captured probes are accumulated (the evaluated ones too: "
            "the policy then knows the question), or of those before the first evaluated one.",
     .text = "all",
     .words = words_observe},
    {.name = "block",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "every_block: rows of a block.",
     .number = 16,
     .min = 1,
     .max = ATS_ROWS_MAX},
};

static int64_t rows_kept(const ats_build *ctx)
{
    return llround(ats_arg(ctx, "budget") * (double)ats_row_cap(ctx));
}

static void keep(uint8_t *hidden, int64_t start, int64_t stop)
{
    if (start < 0) start = 0;
    if (start < stop) memset(hidden + start, 0, (size_t)(stop - start));
}

/* Block b stays when floor((b + 1) budget) > floor(b budget): every k-th for a budget of 1/k. */
static void keep_blocks(const ats_build *ctx, int64_t cap, uint8_t *hidden)
{
    const int64_t block = ats_arg_int(ctx, "block");
    const double budget = ats_arg(ctx, "budget");
    for (int64_t b = 0; b * block < cap; b++) {
        const double tiny = 1e-9; /* 5 * 0.2 is 1 */
        if (floor((double)(b + 1) * budget + tiny) <= floor((double)b * budget + tiny)) continue;
        const int64_t stop = (b + 1) * block;
        keep(hidden, b * block, stop < cap ? stop : cap);
    }
}

typedef struct hitter {
    double mass;
    int64_t row;
} hitter;

static int heavier(const void *a, const void *b)
{
    const hitter *x = a, *y = b;
    if (x->mass != y->mass) return x->mass > y->mass ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static ats_code keep_hitters(const ats_build *ctx, int64_t cap, uint8_t *hidden, ats_err *err)
{
    const int64_t all = rows_kept(ctx), last = llround(ats_arg(ctx, "recent") * (double)all);
    const bool earlier = ats_arg_is(ctx, "observe", "earlier");
    double *mass = NULL;
    hitter *rows = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(ctx->arena, ctx->sample->n_keys, &mass, err));
    ATS_TRY(ATS_NEW(ctx->arena, cap, &rows, err));
    ATS_TRY(ats_observe_mass(ctx, earlier, mass, err));
    keep(hidden, cap - last, cap);
    for (int64_t i = 0; i < cap - last; i++) rows[i] = (hitter){mass[i], i};
    if (cap > last) qsort(rows, (size_t)(cap - last), sizeof *rows, heavier);
    for (int64_t i = 0; i < all - last && i < cap - last; i++) hidden[rows[i].row] = 0;
out:
    return rc;
}

static ats_code choose(const ats_build *ctx, uint8_t *hidden, ats_err *err)
{
    const int64_t cap = ats_row_cap(ctx), all = rows_kept(ctx);
    const char *policy = ats_arg_text(ctx, "policy");
    memset(hidden, 1, (size_t)cap);
    if (strcmp(policy, "every_block") == 0) {
        keep_blocks(ctx, cap, hidden);
    } else if (strcmp(policy, "heavy_hitter") == 0 && ctx->attention != NULL) {
        return keep_hitters(ctx, cap, hidden, err);
    } else {
        int64_t first = strcmp(policy, "sink_recent") == 0 ? ats_arg_int(ctx, "sinks") : 0;
        if (first > all) first = all;
        keep(hidden, 0, first);
        keep(hidden, cap - (all - first), cap);
    }
    return ATS_OK;
}

static ats_code build(const ats_build *ctx, ats_built *out, ats_err *err)
{
    const int64_t cap = ats_row_cap(ctx);
    uint8_t *hidden = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW0(ctx->arena, ctx->sample->n_keys, &hidden, err));
    ATS_TRY(choose(ctx, hidden, err));
    if (ctx->arm == ATS_ARM_CONTROL) {
        for (int64_t i = 0; i < cap; i++) count += hidden[i];
        memset(hidden, 0, (size_t)cap);
        ATS_TRY(ats_mask_random(ctx, count, "control eviction", hidden, err));
    }
    ATS_TRY(ats_mask_check(ctx, hidden, ats_arg_text(ctx, "policy"), err));
    rc = ats_mask_emit(ctx, hidden, out, err);
out:
    return rc;
}

/* Only heavy hitters look at tensors; the layout then hides as many rows, the first ones. */
static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    return ats_arg_is(ctx, "policy", "heavy_hitter") ? build(ctx, out, err) : ATS_OK;
}

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    ats_build blind = *ctx;
    blind.attention = NULL;
    return build(&blind, out, err);
}

/* Every captured probe of the group looks at every key: a product, which is 0.02 of a draw a
 * dimension, and two exponentials. */
static double effort(const ats_build *ctx, const ats_built *out)
{
    (void)out;
    if (!ats_arg_is(ctx, "policy", "heavy_hitter")) return 0;
    const ats_layer *layer = ctx->layer;
    const double rows =
        (double)ctx->sample->n_probes * (double)(layer->n_q_heads / layer->n_kv_heads);
    return rows * (double)ctx->sample->n_keys * (0.4 + 0.02 * (double)layer->d_qk);
}

const ats_family ats_family_kv_evict = {
    .kind = "kv_evict",
    .summary = "Rows that a key-value cache policy would have thrown away, at a budget.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = NULL,
    .has_control = true,
    .has_positions = false,
    .layout = layout,
    .fill = fill,
    .effort = effort,
};
