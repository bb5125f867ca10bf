// One wrapper per PTX instruction that the kernels use. For nvcc the instruction, for a host
// compiler the emulator's version of it (tests/emulation/ptx_emulated.h), by the tables of the PTX
// ISA. Kernels contain no assembly of their own.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#ifndef __CUDACC__
#include <ptx_emulated.h>
#else
namespace ptx {

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// 16 bytes to shared memory; the last 16 - bytes of them zero.
__device__ __forceinline__ void cp_async16(void *shared, const void *global, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
                 "l"(global), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until at most N groups of this thread are on their way.
template <int N> __device__ __forceinline__ void cp_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Four 8x8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// d += a b, 16 x 8 x 16, fp32 sums.
template <class T>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

template <>
__device__ __forceinline__ void mma<__nv_bfloat16>(float (&d)[4], const uint32_t (&a)[4],
                                                   uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma<__half>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The larger one, or NaN where one is NaN.
__device__ __forceinline__ float max_nan(float x, float y)
{
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
    return larger;
}

// 2^x, relative error 2^-22.5; results below 2^-126 are 0.
__device__ __forceinline__ float exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The rest is for sm_90a alone; for other targets it compiles to nothing and is not called.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ATS_HAS_WGMMA 1
#define ATS_ASM_90A(...) asm volatile(__VA_ARGS__)
#else
#define ATS_HAS_WGMMA 0
#define ATS_ASM_90A(...) ((void)0)
#endif

// The same block of shared memory at a multiple of `alignment`.
__device__ __forceinline__ unsigned char *align_shared(unsigned char *p, uint32_t alignment)
{
    return p + (alignment - shared_address(p) % alignment) % alignment;
}

// A matrix in shared memory with the 128-byte swizzle: bytes to the next 64 columns (where it lies
// across its rows) and to the next 8 rows.
__device__ __forceinline__ uint64_t matrix_descriptor(const unsigned char *p, uint32_t leading,
                                                      uint32_t stride)
{
    return uint64_t((shared_address(p) & 0x3ffff) >> 4) | uint64_t(leading >> 4) << 16 |
           uint64_t(stride >> 4) << 32 | uint64_t(1) << 62;
}

// What generic copies wrote becomes visible to the matrix units.
__device__ __forceinline__ void fence_proxy_async()
{
    ATS_ASM_90A("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void wgmma_fence() { ATS_ASM_90A("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit()
{
    ATS_ASM_90A("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until every product is done; d is theirs until then.
template <int N> __device__ __forceinline__ void wgmma_wait(float (&d)[N][4])
{
    ATS_ASM_90A("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) ATS_ASM_90A("" : "+f"(d[i][j])::"memory");
}

// Moves registers between warpgroups that have more than they need and those that have less.
template <int N> __device__ __forceinline__ void keep_registers()
{
    ATS_ASM_90A("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ __forceinline__ void take_registers()
{
    ATS_ASM_90A("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

// An mbarrier in shared memory: a phase ends when `count` threads have arrived and every byte that
// was announced is there.
__device__ __forceinline__ void barrier_init(uint64_t *bar, int count)
{
    ATS_ASM_90A("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count)
                : "memory");
}

// Barriers that were just made become visible to copies.
__device__ __forceinline__ void fence_barriers()
{
    ATS_ASM_90A("fence.mbarrier_init.release.cluster;" ::: "memory");
    fence_proxy_async();
}

__device__ __forceinline__ void barrier_arrive(uint64_t *bar)
{
    ATS_ASM_90A("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

// Arrives, and announces bytes of copies of this phase.
__device__ __forceinline__ void barrier_expect(uint64_t *bar, int bytes)
{
    ATS_ASM_90A("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)),
                "r"(bytes)
                : "memory");
}

// Until the phase of this parity is over.
__device__ __forceinline__ void barrier_wait(uint64_t *bar, uint32_t parity)
{
    ATS_ASM_90A("{.reg .pred over;\n"
                "WAIT:\n"
                "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                "@!over bra WAIT;}" ::"r"(shared_address(bar)),
                "r"(parity)
                : "memory");
}

// The tile of a map at this column and row; elements past the matrix are 0 and count as copied.
__device__ __forceinline__ void copy_tile(void *shared, const CUtensorMap *map, int column, int row,
                                          uint64_t *bar)
{
    ATS_ASM_90A("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(shared)),
                "l"(map), "r"(shared_address(bar)), "r"(column), "r"(row)
                : "memory");
}

// d = a b, or d += a b, 64 x 64 x 16 of a warpgroup: a and b along their rows in shared memory.
template <class T>
__device__ __forceinline__ void wgmma_ss(float (&d)[8][4], uint64_t a, uint64_t b, bool add);
// d += a b with a in registers and b across its rows.
template <class T>
__device__ __forceinline__ void wgmma_rs(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b);

#define ATS_WGMMA_SUMS                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "  \
    "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
#define ATS_WGMMA_ROW(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define ATS_WGMMA_OUT                                                                          \
    ATS_WGMMA_ROW(0), ATS_WGMMA_ROW(1), ATS_WGMMA_ROW(2), ATS_WGMMA_ROW(3), ATS_WGMMA_ROW(4), \
        ATS_WGMMA_ROW(5), ATS_WGMMA_ROW(6), ATS_WGMMA_ROW(7)

template <>
__device__ __forceinline__ void wgmma_ss<__nv_bfloat16>(float (&d)[8][4], uint64_t a, uint64_t b,
                                            bool add)
{
    ATS_ASM_90A("{.reg .pred p;\n"
                "setp.ne.b32 p, %34, 0;\n"
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " ATS_WGMMA_SUMS
                "%32, %33, p, 1, 1, 0, 0;}"
                : ATS_WGMMA_OUT
                : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

template <>
__device__ __forceinline__ void wgmma_rs<__nv_bfloat16>(float (&d)[8][4], const uint32_t (&a)[4],
                                            uint64_t b)
{
    ATS_ASM_90A("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " ATS_WGMMA_SUMS
                "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                : ATS_WGMMA_OUT
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

template <>
__device__ __forceinline__ void wgmma_ss<__half>(float (&d)[8][4], uint64_t a, uint64_t b,
                                            bool add)
{
    ATS_ASM_90A("{.reg .pred p;\n"
                "setp.ne.b32 p, %34, 0;\n"
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATS_WGMMA_SUMS
                "%32, %33, p, 1, 1, 0, 0;}"
                : ATS_WGMMA_OUT
                : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

template <>
__device__ __forceinline__ void wgmma_rs<__half>(float (&d)[8][4], const uint32_t (&a)[4],
                                            uint64_t b)
{
    ATS_ASM_90A("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATS_WGMMA_SUMS
                "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                : ATS_WGMMA_OUT
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

} // namespace ptx
#endif
