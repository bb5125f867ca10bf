#include "kernels/attention_device.h"

#include <pthread.h>

#include "kernels/blocks.h"
#include "kernels/device_load.h"
#include "kernels/device_pass.h"

extern const ats_backend ats_backend_cpu;

/* What a kind's probe said, asked once. */
typedef struct findings {
    pthread_once_t once;
    ats_err err;
    char detail[256];
} findings;

static findings found[] = {[ATS_DEVICE_FUSED] = {.once = PTHREAD_ONCE_INIT},
                           [ATS_DEVICE_CUBLAS] = {.once = PTHREAD_ONCE_INIT}};

static void look(ats_device_kind kind)
{
    findings *f = &found[kind];
    const ats_device_api *api;
    ats_device_error error = {""};
    if (ats_device_load(&api, &f->err) != ATS_OK) return;
    const ats_device_status status = api->probe(kind, f->detail, sizeof f->detail, &error);
    ats_code rc = ats_device_code(status, &error, &f->err);
    if (rc != ATS_OK) f->err.code = rc;
}

static void look_fused(void) { look(ATS_DEVICE_FUSED); }
static void look_cublas(void) { look(ATS_DEVICE_CUBLAS); }

static ats_code probe(ats_device_kind kind, ats_err *err)
{
    findings *f = &found[kind];
    pthread_once(&f->once, kind == ATS_DEVICE_FUSED ? look_fused : look_cublas);
    if (f->err.code == ATS_OK) return ATS_OK;
    return ats_fail(err, f->err.code, "backend %s: %s",
                    kind == ATS_DEVICE_FUSED ? "cuda" : "cublas", f->err.text);
}

static ats_code supports(ats_device_kind kind, const ats_problem *problem, ats_err *err)
{
    const ats_device_api *api;
    int64_t d_qk, d_v;
    ats_code rc;
    ATS_TRY(probe(kind, err));
    ATS_TRY(ats_problem_check(problem, err));
    ATS_TRY(ats_device_load(&api, err));
    api->limits(kind, &d_qk, &d_v);
    if (problem->d_qk > d_qk || problem->d_v > d_v)
        rc = ats_fail(err, ATS_E_UNSUPPORTED,
                      "the GPU kernel takes heads of at most %lld (keys) and %lld (values) "
                      "elements, these have %lld and %lld; use --backend cpu",
                      (long long)d_qk, (long long)d_v, (long long)problem->d_qk,
                      (long long)problem->d_v);
out:
    return rc;
}

/* Host memory: the cpu backend's, and as much again for the device's answers on their way. */
static size_t bytes_of(const ats_problem *problem, int64_t at_work)
{
    ats_problem free = *problem;
    free.memory = 0;
    const size_t cpu = ats_backend_cpu.workspace_bytes(&free, at_work);
    return cpu > SIZE_MAX / 2 ? SIZE_MAX : 2 * cpu;
}

static size_t workspace(ats_device_kind kind, const ats_problem *problem, int64_t n_variants)
{
    if (probe(kind, NULL) != ATS_OK) return 0;
    return ats_blocks_choose(problem, n_variants, bytes_of).bytes;
}

static ats_code evaluate_rows(ats_device_kind kind, const ats_problem *problem,
                              const ats_edit *variants, int64_t n_variants, int at_work,
                              ats_emit_fn emit, void *ctx, ats_err *err)
{
    const ats_device_api *api;
    ats_device_run run = {.api = NULL};
    ats_code rc;
    ATS_TRY(ats_device_load(&api, err));
    ATS_TRY(ats_device_run_begin(&run, api, kind, err));
    ATS_TRY(ats_cpu_evaluate(problem, variants, n_variants, at_work, &run.hooks, emit, ctx, err));
out:
    if (run.api != NULL) ats_device_run_end(&run);
    return rc;
}

static ats_code rows_cuda(const ats_problem *problem, const ats_edit *variants, int64_t n_variants,
                          int at_work, ats_emit_fn emit, void *ctx, ats_err *err)
{
    return evaluate_rows(ATS_DEVICE_FUSED, problem, variants, n_variants, at_work, emit, ctx, err);
}

static ats_code rows_cublas(const ats_problem *problem, const ats_edit *variants,
                            int64_t n_variants, int at_work, ats_emit_fn emit, void *ctx,
                            ats_err *err)
{
    return evaluate_rows(ATS_DEVICE_CUBLAS, problem, variants, n_variants, at_work, emit, ctx, err);
}

static ats_code evaluate(ats_device_kind kind, const ats_problem *problem, const ats_edit *variants,
                         int64_t n_variants, ats_emit_fn emit, void *ctx, ats_err *err)
{
    const ats_code rc = supports(kind, problem, err);
    if (rc != ATS_OK) return rc;
    const ats_blocks blocks = ats_blocks_choose(problem, n_variants, bytes_of);
    return ats_blocks_evaluate(problem, variants, n_variants, &blocks,
                               kind == ATS_DEVICE_FUSED ? rows_cuda : rows_cublas, emit, ctx, err);
}

static ats_code probe_cuda(ats_err *err) { return probe(ATS_DEVICE_FUSED, err); }
static ats_code probe_cublas(ats_err *err) { return probe(ATS_DEVICE_CUBLAS, err); }

static ats_code supports_cuda(const ats_problem *problem, ats_err *err)
{
    return supports(ATS_DEVICE_FUSED, problem, err);
}

static ats_code supports_cublas(const ats_problem *problem, ats_err *err)
{
    return supports(ATS_DEVICE_CUBLAS, problem, err);
}

static ats_code evaluate_cuda(const ats_problem *problem, const ats_edit *variants,
                              int64_t n_variants, ats_emit_fn emit, void *ctx, ats_err *err)
{
    return evaluate(ATS_DEVICE_FUSED, problem, variants, n_variants, emit, ctx, err);
}

static ats_code evaluate_cublas(const ats_problem *problem, const ats_edit *variants,
                                int64_t n_variants, ats_emit_fn emit, void *ctx, ats_err *err)
{
    return evaluate(ATS_DEVICE_CUBLAS, problem, variants, n_variants, emit, ctx, err);
}

static size_t workspace_cuda(const ats_problem *problem, int64_t n_variants)
{
    return workspace(ATS_DEVICE_FUSED, problem, n_variants);
}

static size_t workspace_cublas(const ats_problem *problem, int64_t n_variants)
{
    return workspace(ATS_DEVICE_CUBLAS, problem, n_variants);
}

static const char *detail(ats_device_kind kind)
{
    return probe(kind, NULL) == ATS_OK ? found[kind].detail : "not available";
}

static const char *detail_cuda(void) { return detail(ATS_DEVICE_FUSED); }
static const char *detail_cublas(void) { return detail(ATS_DEVICE_CUBLAS); }

const ats_backend ats_backend_cuda = {
    .name = "cuda",
    .summary = "GPU: one fused kernel for logits, sums and outputs; variants from its states",
    .probe = probe_cuda,
    .supports = supports_cuda,
    .workspace_bytes = workspace_cuda,
    .evaluate = evaluate_cuda,
    .detail = detail_cuda,
};

const ats_backend ats_backend_cublas = {
    .name = "cublas",
    .summary = "GPU, unfused: products by cuBLAS; the cross-check and baseline of cuda",
    .probe = probe_cublas,
    .supports = supports_cublas,
    .workspace_bytes = workspace_cublas,
    .evaluate = evaluate_cublas,
    .detail = detail_cublas,
};
