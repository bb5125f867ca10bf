#include "kernels/absent.h"

static ats_code no_cuda(ats_err *err)
{
    return ats_fail(err, ATS_E_DEVICE,
                    "backend cuda is not built into this program: the GPU attention kernel is a "
                    "separate module that this build does not have; use cpu");
}

static ats_code no_cublas(ats_err *err)
{
    return ats_fail(err, ATS_E_DEVICE,
                    "backend cublas is not built into this program: the unfused GPU path needs "
                    "CUDA and cuBLAS, which this build does not have; use cpu");
}

static ats_code supports_cuda(const ats_problem *problem, ats_err *err)
{
    (void)problem;
    return no_cuda(err);
}

static ats_code supports_cublas(const ats_problem *problem, ats_err *err)
{
    (void)problem;
    return no_cublas(err);
}

static size_t no_workspace(const ats_problem *problem, int64_t n_variants)
{
    (void)problem;
    (void)n_variants;
    return 0;
}

static ats_code evaluate_cuda(const ats_problem *problem, const ats_edit *variants,
                              int64_t n_variants, ats_emit_fn emit, void *ctx, ats_err *err)
{
    (void)problem;
    (void)variants;
    (void)n_variants;
    (void)emit;
    (void)ctx;
    return no_cuda(err);
}

static ats_code evaluate_cublas(const ats_problem *problem, const ats_edit *variants,
                                int64_t n_variants, ats_emit_fn emit, void *ctx, ats_err *err)
{
    (void)problem;
    (void)variants;
    (void)n_variants;
    (void)emit;
    (void)ctx;
    return no_cublas(err);
}

static const char *absent_detail(void) { return "not built"; }

const ats_backend ats_backend_cuda = {
    .name = "cuda",
    .summary = "GPU attention kernel (not built)",
    .probe = no_cuda,
    .supports = supports_cuda,
    .workspace_bytes = no_workspace,
    .evaluate = evaluate_cuda,
    .detail = absent_detail,
};

const ats_backend ats_backend_cublas = {
    .name = "cublas",
    .summary = "GPU, unfused with cuBLAS: the cross-check (not built)",
    .probe = no_cublas,
    .supports = supports_cublas,
    .workspace_bytes = no_workspace,
    .evaluate = evaluate_cublas,
    .detail = absent_detail,
};
