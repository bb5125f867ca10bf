#include "bench/gpu.h"

#include <math.h>
#include <stdio.h>

#include "kernels/device_load.h"
#include "kernels/device_pass.h"

static int repeats(const ats_bench *bench) { return bench->quick ? 3 : 20; }

/* One measurement of kernels: a shape, what comes out, and the bar that it is held against. */
typedef struct kernel_row {
    const char *key, *what;
    ats_device_kind kind;
    ats_bench_shape shape;
    bool logits, values; /* written out; multiplied */
    bool bandwidth;      /* GB/s of keys and values read, else TFLOP/s of 2 n d rows a product */
    double must, goal;
} kernel_row;

static ats_bench_shape sized(const ats_bench *bench, ats_bench_shape shape)
{
    if (bench->quick) shape.n_keys /= 256;
    return shape;
}

/* A problem as one tile, all keys legal for all rows. */
static ats_code describe(ats_arena *arena, const ats_problem *p, ats_device_problem *problem,
                         ats_device_view *view, ats_err *err)
{
    const int64_t lanes = (p->n_rows + 15) / 16 * 16;
    float *q_at = NULL;
    int64_t *low = NULL, *high = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, lanes, &q_at, err));
    ATS_TRY(ATS_NEW(arena, lanes, &low, err));
    ATS_TRY(ATS_NEW(arena, lanes, &high, err));
    for (int64_t row = 0; row < lanes; row++) {
        low[row] = INT64_MIN;
        high[row] = INT64_MAX;
    }
    *problem = (ats_device_problem){.n_keys = p->n_keys,
                                    .d_qk = p->d_qk,
                                    .d_v = p->d_v,
                                    .rows = p->n_rows,
                                    .lanes = lanes,
                                    .width = (p->d_v + 15) / 16 * 16,
                                    .leaf = ats_key_tree_leaf(p->n_keys),
                                    .tile = lanes,
                                    .n_tiles = 1,
                                    .k_type = (ats_device_type)p->k_dtype,
                                    .v_type = (ats_device_type)p->v_dtype,
                                    .k = p->k,
                                    .v = p->v,
                                    .position = p->key_pos};
    *view = (ats_device_view){.q = p->q,
                              .q_at = q_at,
                              .low = low,
                              .high = high,
                              .scale = (float)p->contract.scale,
                              .inverse_temperature = 1};
out:
    return rc;
}

static ats_code make_pieces(ats_arena *arena, const ats_device_problem *problem, bool logits,
                            ats_device_pass *out, ats_err *err)
{
    const int64_t n = (problem->n_keys + problem->leaf - 1) / problem->leaf;
    static float *const unused[1] = {NULL}; /* measured passes write nothing on the host */
    ats_device_piece *pieces = NULL;
    const ats_code rc = ATS_NEW0(arena, n, &pieces, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = i * problem->leaf, left = problem->n_keys - first;
        pieces[i] = (ats_device_piece){.first = first,
                                       .keys = left < problem->leaf ? left : problem->leaf,
                                       .at = -1,
                                       .z = logits ? unused : NULL};
    }
    out->pieces = pieces;
    out->n_pieces = n;
    return ATS_OK;
}

static ats_code time_kernels(ats_arena *arena, const ats_device_api *api, const kernel_row *row,
                             const ats_problem *p, int times, double *seconds, ats_err *err)
{
    ats_device_problem problem;
    ats_device_view view;
    ats_device_pass pass = {.n_views = 1, .views = &view};
    ats_device_error error = {""};
    ats_device *device = NULL;
    float *norm = NULL, *log_norm = NULL;
    uint8_t *bad = NULL;
    ats_code rc;
    ATS_TRY(describe(arena, p, &problem, &view, err));
    ATS_TRY(make_pieces(arena, &problem, row->logits, &pass, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &norm, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &log_norm, err));
    ATS_TRY(ATS_NEW(arena, p->n_keys, &bad, err));
    ATS_TRY(ats_device_code(api->open(row->kind, &problem, 1, norm, log_norm, bad, &device, &error),
                            &error, err));
    ATS_TRY(ats_device_code(api->measure(device, &pass, times, row->values, seconds, &error),
                            &error, err));
out:
    if (device != NULL) api->close(device);
    return rc;
}

static ats_code add_kernels(ats_bench *bench, const ats_device_api *api, const kernel_row *row,
                            ats_err *err)
{
    ats_arena arena;
    ats_problem p;
    double seconds = 0;
    ats_code rc;
    const ats_bench_shape shape = sized(bench, row->shape);
    ats_arena_init(&arena, false);
    ATS_TRY(ats_bench_problem(&arena, &shape, &p, err));
    ATS_TRY(time_kernels(&arena, api, row, &p, repeats(bench), &seconds, err));
    const double n = (double)p.n_keys, d = (double)p.d_qk, products = row->values ? 2 : 1;
    const double amount = row->bandwidth
                              ? products * n * d * (double)ats_dtype_size(p.k_dtype) * 1e-9
                              : 2 * products * n * d * (double)p.n_rows * 1e-12;
    ats_bench_row out = {.key = row->key,
                         .group = "gpu",
                         .value = amount / seconds,
                         .unit = row->bandwidth ? "GB/s" : "TFLOP/s",
                         .must = row->must,
                         .goal = row->goal};
    snprintf(out.what, sizeof out.what, "%s", row->what);
    snprintf(out.note, sizeof out.note, "%lld keys, %lld rows, d %lld, %s; %.3f ms of kernels",
             (long long)p.n_keys, (long long)p.n_rows, (long long)p.d_qk, ats_dtype_name(p.k_dtype),
             seconds * 1e3);
    ATS_TRY(ats_bench_add(bench, &out, err));
out:
    ats_arena_fini(&arena);
    return rc;
}

typedef struct evaluation {
    const ats_backend *backend;
    const ats_problem *problem;
    const ats_edit *edits;
    int64_t n_edits;
} evaluation;

static ats_code evaluate(void *ctx, ats_err *err)
{
    const evaluation *e = ctx;
    return e->backend->evaluate(e->problem, e->edits, e->n_edits, ats_bench_ignore, NULL, err);
}

/* All of a layer's work with 32 query heads on 8 key heads, as 8 times one key head. */
static ats_code add_evaluation(ats_bench *bench, const char *name, ats_err *err)
{
    enum { VARIANTS = 256, KEY_HEADS = 8 };
    const ats_bench_shape shape = sized(bench, (ats_bench_shape){131072, 4, 64, 128, ATS_BF16});
    ats_arena arena;
    ats_problem p;
    ats_edit *edits = NULL;
    evaluation e = {.n_edits = bench->quick ? 16 : VARIANTS};
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_backend_find(name, &e.backend, err));
    ATS_TRY(ats_bench_problem(&arena, &shape, &p, err));
    ATS_TRY(ATS_NEW(&arena, VARIANTS, &edits, err));
    ATS_TRY(ats_bench_edits(&arena, &p, e.n_edits, 32, edits, err));
    e.problem = &p;
    e.edits = edits;
    ats_bench_timed timed = {.run = evaluate, .ctx = &e};
    ATS_TRY(ats_bench_time(bench, &timed, 1, err));
    ats_bench_row row = {.key = "gpu_evaluate",
                         .group = "gpu",
                         .value = KEY_HEADS * timed.best * 1e3,
                         .unit = "ms",
                         .must = 1,
                         .goal = 0.45,
                         .at_most = true};
    snprintf(row.what, sizeof row.what,
             "%lld variants, 32 heads, 64 probes, statistics and outputs", (long long)e.n_edits);
    snprintf(row.note, sizeof row.note,
             "%lld keys; 8 key heads one after the other, copies and the host's part included",
             (long long)p.n_keys);
    ATS_TRY(ats_bench_add(bench, &row, err));
out:
    ats_arena_fini(&arena);
    return rc;
}

ats_code ats_bench_gpu(ats_bench *bench, bool kernels_alone, ats_err *err)
{
    const double none = (double)NAN;
    const ats_bench_shape wide = {131072, 8, 64, 128, ATS_BF16};
    const ats_bench_shape narrow = {1048576, 8, 1, 128, ATS_BF16};
    const ats_bench_shape full = {32768, 8, 64, 128, ATS_F32};
    const kernel_row rows[] = {
        {"gpu_pass", "fused base pass with statistics", ATS_DEVICE_FUSED, wide, false, true, false,
         350, 600},
        {"gpu_pass_logits", "the same with logits written", ATS_DEVICE_FUSED, wide, true, true,
         false, none, none},
        {"gpu_statistics", "statistics without outputs", ATS_DEVICE_FUSED, wide, false, false,
         false, none, none},
        {"gpu_probe", "probe mode, keys and values", ATS_DEVICE_FUSED, narrow, false, true, true,
         3400, 4100},
        {"gpu_probe_keys", "probe mode, keys alone", ATS_DEVICE_FUSED, narrow, false, false, true,
         none, none},
        {"gpu_pass_fp32", "fused base pass, fp32", ATS_DEVICE_FUSED, full, false, true, false, none,
         none},
        {"gpu_unfused", "the same as gpu_pass by cuBLAS", ATS_DEVICE_CUBLAS, wide, true, true,
         false, none, none},
    };
    const ats_device_api *api;
    const ats_backend *cuda = NULL;
    ats_code rc;
    ATS_TRY(ats_backend_find("cuda", &cuda, err));
    ATS_TRY(ats_device_load(&api, err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ats_backend *cublas = NULL;
        if (rows[i].kind == ATS_DEVICE_CUBLAS &&
            ats_backend_find("cublas", &cublas, NULL) != ATS_OK)
            continue;
        ATS_TRY(add_kernels(bench, api, &rows[i], err));
    }
    if (!kernels_alone) ATS_TRY(add_evaluation(bench, "cuda", err));
out:
    return rc;
}
