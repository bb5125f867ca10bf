// The unfused kind: products by cuBLAS, sums by small kernels. The library is opened by name, so
// that the fused kind runs without it.
#include <cublas_v2.h>

#include <cstdio>

#include "kernels/cuda/cublas_library.h"
#include "kernels/cuda/queue.h"

namespace ats {

struct unfused {
    cublasHandle_t handle;
};

static ats_device_status blas_check(cublasStatus_t rc, const char *call, ats_device_error *error)
{
    if (rc == CUBLAS_STATUS_SUCCESS) return ATS_DEVICE_OK;
    return refuse(error, rc == CUBLAS_STATUS_ALLOC_FAILED ? ATS_DEVICE_MEMORY : ATS_DEVICE_LOST,
                  "%s: cuBLAS status %d; look at `nvidia-smi`, run again, or take --backend cpu",
                  call, static_cast<int>(rc));
}

#define ATS_BLAS(call) ATS_STEP(blas_check((call), #call, error))

ats_device_status unfused_probe(char *detail, int64_t size, ats_device_error *error)
{
    char why[512];
    const cublas_library *library = cublas_find(why, sizeof why);
    if (library == nullptr) return refuse(error, ATS_DEVICE_ABSENT, "%s", why);
    snprintf(detail, static_cast<size_t>(size), "cuBLAS %d.%d", CUBLAS_VER_MAJOR,
             CUBLAS_VER_MINOR);
    return ATS_DEVICE_OK;
}

ats_device_status unfused_open(half *h, ats_device_error *error)
{
    char why[512];
    const cublas_library *library = cublas_find(why, sizeof why);
    if (library == nullptr) return refuse(error, ATS_DEVICE_ABSENT, "%s", why);
    cublasHandle_t handle = nullptr;
    ATS_BLAS(library->create(&handle));
    h->blas = new unfused{handle};
    ATS_BLAS(library->set_stream(handle, h->stream));
    // 16-bit products are summed in fp32 all the way.
    ATS_BLAS(library->set_math_mode(
        handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                          CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
    return ATS_DEVICE_OK;
}

void unfused_close(half *h)
{
    if (h->blas == nullptr) return;
    cublas_find(nullptr, 0)->destroy(h->blas->handle);
    delete h->blas;
    h->blas = nullptr;
}

static cudaDataType_t data_type(ats_device_type type)
{
    if (type == ATS_DEVICE_F32) return CUDA_R_32F;
    return type == ATS_DEVICE_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

// PEDANTIC keeps fp32 products out of TF32, whatever the environment asks.
static cublasComputeType_t compute_type(ats_device_type type)
{
    return type == ATS_DEVICE_F32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
}

// z [keys, lanes] = q.k of pieces [from, to), which are neighbours in memory and share a view.
static ats_device_status key_product(const ats_device *d, half *h, const pass_args &args,
                                     int64_t from, int64_t to, ats_device_error *error)
{
    const cublas_library *library = cublas_find(nullptr, 0);
    const piece_args *pieces = h->host_in.pieces;
    const view_args &view = h->host_in.views[pieces[from].view];
    const cudaDataType_t type = data_type(args.k_type);
    const float one = 1, zero = 0;
    int keys = 0;
    for (int64_t i = from; i < to; i++) keys += pieces[i].keys;
    const void *halves[] = {args.k_type == ATS_DEVICE_F32 ? view.q : view.q_hi, view.q_lo};
    for (int i = 0; i < 2 && halves[i] != nullptr; i++)
        ATS_BLAS(library->gemm(h->blas->handle, CUBLAS_OP_T, CUBLAS_OP_N, args.lanes, keys,
                               d->k_pitch, &one, halves[i], type, d->k_pitch, pieces[from].k, type,
                               d->k_pitch, i == 0 ? &zero : &one, pieces[from].z, CUDA_R_32F,
                               args.lanes, compute_type(args.k_type), CUBLAS_GEMM_DEFAULT));
    return ATS_DEVICE_OK;
}

// o [rows, v_pitch] of pieces [from, to), which have equal numbers of keys.
static ats_device_status value_product(const ats_device *d, half *h, const pass_args &args,
                                       int64_t from, int64_t to, ats_device_error *error)
{
    const cublas_library *library = cublas_find(nullptr, 0);
    const cudaDataType_t type = data_type(args.v_type);
    const float alpha = args.v_type == ATS_DEVICE_F16 ? 1.0f / 32768.0f : 1.0f, one = 1, zero = 0;
    const int halves = args.v_type == ATS_DEVICE_F32 ? 1 : 2;
    for (int i = 0; i < halves; i++)
        ATS_BLAS(library->gemm_batched(
            h->blas->handle, CUBLAS_OP_N, CUBLAS_OP_T, d->v_pitch, args.rows,
            h->host_in.pieces[from].keys, &alpha, h->in.value_rows + from, type, d->v_pitch,
            h->in.weights + i * d->plan.pieces + from, type, args.lanes, i == 0 ? &zero : &one,
            h->in.outputs + from, CUDA_R_32F, d->v_pitch, static_cast<int>(to - from),
            compute_type(args.v_type), CUBLAS_GEMM_DEFAULT));
    return ATS_DEVICE_OK;
}

static ats_device_status send_pointers(const ats_device *d, half *h, const pass_args &args,
                                       ats_device_error *error)
{
    const group_input &host = h->host_in;
    const int64_t size = type_size(args.v_type);
    int64_t keys = 0;
    for (int64_t i = 0; i < h->count; i++) {
        const piece_args &piece = host.pieces[i];
        unsigned char *weights = h->weights + keys * args.lanes * 4;
        host.weights[i] = weights;
        host.weights[d->plan.pieces + i] = weights + int64_t(piece.keys) * args.lanes * size;
        host.value_rows[i] = const_cast<void *>(piece.v);
        host.outputs[i] = piece.o;
        keys += piece.keys;
    }
    const auto send = [h](void **to, void **from, int64_t count) {
        return cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof *to,
                               cudaMemcpyHostToDevice, h->stream);
    };
    ATS_CUDA(send(h->in.weights, host.weights, d->plan.pieces + h->count));
    ATS_CUDA(send(h->in.value_rows, host.value_rows, h->count));
    ATS_CUDA(send(h->in.outputs, host.outputs, h->count));
    return ATS_DEVICE_OK;
}

static bool neighbours(const ats_device *d, const pass_args &args, const piece_args &a,
                       const piece_args &b)
{
    const unsigned char *end = static_cast<const unsigned char *>(a.k) +
                               int64_t(a.keys) * d->k_pitch * type_size(args.k_type);
    return a.view == b.view && end == b.k;
}

ats_device_status unfused_group(ats_device *d, half *h, const pass_args &args, bool side,
                                ats_device_error *error)
{
    (void)side;
    const piece_args *pieces = h->host_in.pieces;
    ATS_STEP(send_pointers(d, h, args, error));
    for (int64_t from = 0, to; from < h->count; from = to) {
        for (to = from + 1; to < h->count; to++)
            if (!neighbours(d, args, pieces[to - 1], pieces[to])) break;
        ATS_STEP(key_product(d, h, args, from, to, error));
    }
    ATS_CUDA(launch_logits(args, static_cast<int>(h->count), h->stream));
    const weight_args weights = {h->in.weights, args.v_type};
    ATS_CUDA(launch_sums(args, weights, static_cast<int>(h->count), h->stream));
    for (int64_t from = 0, to; from < h->count; from = to) {
        for (to = from + 1; to < h->count; to++)
            if (pieces[to].keys != pieces[from].keys || (pieces[to].o == nullptr) !=
                                                            (pieces[from].o == nullptr))
                break;
        if (pieces[from].o != nullptr) ATS_STEP(value_product(d, h, args, from, to, error));
    }
    return ATS_DEVICE_OK;
}

} // namespace ats
