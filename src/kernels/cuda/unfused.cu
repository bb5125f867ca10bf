// The kernels around the products of the unfused path, and the norms of values for both.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/ptx.cuh"

namespace ats {

constexpr int THREADS = 128;

// Threads: a block is one piece x 128 rows, a thread one row. z holds q.k, key-major, so neighbours
// read neighbours.
__global__ void __launch_bounds__(THREADS) logits(pass_args args)
{
    const piece_args piece = args.pieces[blockIdx.x];
    const view_args view = args.views[piece.view];
    const int row = static_cast<int>(blockIdx.y) * THREADS + static_cast<int>(threadIdx.x);
    if (row >= args.lanes) return;
    const row_args at = load_row(args, view, row);
    const bool masked = !sees_all(at, piece);
    for (int key = 0; key < piece.keys; key++) {
        float *z = piece.z + int64_t(key) * args.lanes + row;
        *z = finish_logit(args, piece, at, view.inverse_temperature, *z, key, row, masked);
    }
}

__device__ inline void store_weight(const weight_args &to, const piece_args &piece, int lanes,
                                    int piece_index, int64_t at, float w)
{
    void *out = to.weights[piece_index];
    const int64_t half = int64_t(piece.keys) * lanes;
    if (to.type == ATS_DEVICE_F32) {
        static_cast<float *>(out)[at] = w;
    } else if (to.type == ATS_DEVICE_BF16) {
        __nv_bfloat16 *p = static_cast<__nv_bfloat16 *>(out);
        p[at] = __float2bfloat16_rn(w);
        p[half + at] = __float2bfloat16_rn(w - __bfloat162float(p[at]));
    } else {
        __half *p = static_cast<__half *>(out);
        p[at] = __float2half_rn(w * 32768.0f);
        p[half + at] = __float2half_rn(w * 32768.0f - __half2float(p[at]));
    }
}

// Threads: as in `logits`; two passes over the piece, so the maximum is exact.
__global__ void __launch_bounds__(THREADS) sums(pass_args args, weight_args to)
{
    const int index = static_cast<int>(blockIdx.x);
    const piece_args piece = args.pieces[index];
    const int row = static_cast<int>(blockIdx.y) * THREADS + static_cast<int>(threadIdx.x);
    if (row >= args.lanes) return;
    row_sums s;
    for (int key = 0; key < piece.keys; key++) {
        const float z = piece.z[int64_t(key) * args.lanes + row];
        s.m = fmaxf(s.m, z);
        s.mc = fmaxf(s.mc, z + piece.log_norm[key]);
    }
    const float base = s.m > -INFINITY ? s.m : 0.0f;
    for (int key = 0; key < piece.keys; key++) {
        const int64_t at = int64_t(key) * args.lanes + row;
        const float z = piece.z[at], below = ptx::max_nan(z - base, FAR_BELOW);
        const float w = ptx::exp2(below * LOG2E);
        s.l += w;
        s.e += w * below;
        s.s2 += w * w;
        s.a += w * piece.norm[key];
        s.n += z > -INFINITY ? 1.0f : 0.0f;
        if (piece.o != nullptr) store_weight(to, piece, args.lanes, index, at, w);
    }
    store_sums(args, piece, row, s);
}

static dim3 row_grid(const pass_args &args, int pieces)
{
    return dim3(static_cast<unsigned>(pieces),
                static_cast<unsigned>((args.lanes + THREADS - 1) / THREADS));
}

cudaError_t launch_logits(const pass_args &args, int pieces, cudaStream_t stream)
{
    ATS_LAUNCH(logits, row_grid(args, pieces), dim3(THREADS), 0, stream, args);
    return cudaGetLastError();
}

cudaError_t launch_sums(const pass_args &args, const weight_args &weights, int pieces,
                        cudaStream_t stream)
{
    ATS_LAUNCH(sums, row_grid(args, pieces), dim3(THREADS), 0, stream, args, weights);
    return cudaGetLastError();
}

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__half x) { return __half2float(x); }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void clear(float &x) { x = 0.0f; }
__device__ inline void clear(__half &x) { x = __float2half_rn(0.0f); }
__device__ inline void clear(__nv_bfloat16 &x) { x = __float2bfloat16_rn(0.0f); }

// Threads: a warp is one key. Squares are summed in double: a row of 1e30 has a norm.
template <class T>
__global__ void __launch_bounds__(THREADS) norms(T *values, int64_t keys, int pitch, float *norm,
                                                 float *log_norm, uint8_t *bad)
{
    const int64_t key = int64_t(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (key >= keys) return;
    T *row = values + key * pitch;
    double squares = 0;
    for (int i = lane; i < pitch; i += 32) {
        const double x = static_cast<double>(widen(row[i]));
        squares += x * x;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        squares += __shfl_xor_sync(0xffffffffu, squares, step);
    const bool finite = sqrt(squares) <= 3.4028234663852886e38;
    if (!finite)
        for (int i = lane; i < pitch; i += 32) clear(row[i]);
    if (lane != 0) return;
    bad[key] = finite ? 0 : 1;
    norm[key] = finite ? static_cast<float>(sqrt(squares)) : 0.0f;
    log_norm[key] =
        finite && squares > 0 ? static_cast<float>(0.5 * log(squares)) : -INFINITY;
}

template <class T>
static cudaError_t launch_typed(void *values, int64_t keys, int pitch, float *norm, float *log_norm,
                                uint8_t *bad, cudaStream_t stream)
{
    const unsigned blocks = static_cast<unsigned>((keys + THREADS / 32 - 1) / (THREADS / 32));
    ATS_LAUNCH((norms<T>), dim3(blocks), dim3(THREADS), 0, stream, static_cast<T *>(values), keys,
               pitch, norm, log_norm, bad);
    return cudaGetLastError();
}

cudaError_t launch_norms(ats_device_type type, void *values, int64_t keys, int pitch, float *norm,
                         float *log_norm, uint8_t *bad, cudaStream_t stream)
{
    if (keys == 0) return cudaSuccess;
    if (type == ATS_DEVICE_F32)
        return launch_typed<float>(values, keys, pitch, norm, log_norm, bad, stream);
    if (type == ATS_DEVICE_BF16)
        return launch_typed<__nv_bfloat16>(values, keys, pitch, norm, log_norm, bad, stream);
    return launch_typed<__half>(values, keys, pitch, norm, log_norm, bad, stream);
}

} // namespace ats
