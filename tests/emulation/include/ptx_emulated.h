// The PTX instructions of kernels/cuda/ptx.cuh for the emulator, after the fragment tables of the
// PTX ISA ("Matrix Fragments for mma.m16n8k16", "ldmatrix").
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuemu.h>

namespace ptx {

// The target is unreadable until the wait that covers the copy, and the bytes are read only then.
inline void cp_async16(void *shared, const void *global, int bytes)
{
    if ((reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(global)) % 16 != 0)
        cuemu::fail("cp.async: an address is not a multiple of 16");
    cuemu::Fiber &f = cuemu::fiber();
    f.copies.push_back({shared, global, bytes, f.groups});
    memset(shared, 0xff, 16);
}

inline void cp_commit() { cuemu::fiber().groups++; }

template <int N> void cp_wait()
{
    cuemu::Fiber &f = cuemu::fiber();
    size_t done = 0;
    for (; done < f.copies.size() && f.copies[done].group < f.groups - N; done++) {
        const cuemu::Copy &c = f.copies[done];
        memcpy(c.shared, c.global, size_t(c.bytes));
        memset(static_cast<char *>(c.shared) + c.bytes, 0, size_t(16 - c.bytes));
        f.unfenced = true;
    }
    f.copies.erase(f.copies.begin(), f.copies.begin() + long(done));
}

struct Matrices {
    const void *row;
    uint32_t *r;
};

inline void load_matrices(uint32_t (&r)[4], const void *row, cuemu::WarpOp op, const char *name)
{
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
        cuemu::fail("%s: a row is not at a multiple of 16", name);
    Matrices s{row, r};
    cuemu::collective(0xffffffffu, op, &s, name);
}

inline const uint16_t *matrix_row(void **slot, int matrix, int row)
{
    return static_cast<const uint16_t *>(static_cast<Matrices *>(slot[matrix * 8 + row])->row);
}

// Lane i: elements (i / 4, 2 (i % 4) + {0, 1}) of each matrix.
inline void ldmatrix_x4(uint32_t (&r)[4], const void *row)
{
    load_matrices(
        r, row,
        [](void **slot, unsigned) {
            for (int lane = 0; lane < 32; lane++)
                for (int m = 0; m < 4; m++)
                    memcpy(&static_cast<Matrices *>(slot[lane])->r[m],
                           matrix_row(slot, m, lane / 4) + lane % 4 * 2, 4);
        },
        "ldmatrix.x4");
}

inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void *row)
{
    load_matrices(
        r, row,
        [](void **slot, unsigned) {
            for (int lane = 0; lane < 32; lane++)
                for (int m = 0; m < 4; m++) {
                    const uint32_t low = matrix_row(slot, m, lane % 4 * 2)[lane / 4];
                    const uint32_t high = matrix_row(slot, m, lane % 4 * 2 + 1)[lane / 4];
                    static_cast<Matrices *>(slot[lane])->r[m] = low | high << 16;
                }
        },
        "ldmatrix.x4.trans");
}

template <class T> float half_of(uint32_t word, int high)
{
    const uint16_t bits = uint16_t(high ? word >> 16 : word);
    T x;
    memcpy(static_cast<void *>(&x), &bits, 2);
    return float(x);
}

struct Product {
    float *d;
    const uint32_t *a;
    uint32_t b[2];
};

// a: rows g = lane / 4 and g + 8, columns 2t, 2t + 1 and those plus 8, t = lane % 4; b: the same of
// columns g; d: rows g and g + 8, columns 2t, 2t + 1.
template <class T> void mma_op(void **slot, unsigned)
{
    float a[16][16], b[8][16];
    for (int lane = 0; lane < 32; lane++) {
        const Product *p = static_cast<Product *>(slot[lane]);
        const int g = lane / 4, t = lane % 4 * 2;
        for (int i = 0; i < 8; i++)
            a[g + i / 2 % 2 * 8][t + i % 2 + i / 4 * 8] = half_of<T>(p->a[i / 2], i % 2);
        for (int i = 0; i < 4; i++) b[g][t + i % 2 + i / 2 * 8] = half_of<T>(p->b[i / 2], i % 2);
    }
    for (int lane = 0; lane < 32; lane++) {
        const Product *p = static_cast<Product *>(slot[lane]);
        for (int i = 0; i < 4; i++) {
            const float *row = a[lane / 4 + i / 2 * 8], *column = b[lane % 4 * 2 + i % 2];
            float sum = 0;
            for (int k = 0; k < 16; k++) sum += row[k] * column[k];
            p->d[i] += sum;
        }
    }
}

template <class T> void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    Product s{d, a, {b0, b1}};
    cuemu::collective(0xffffffffu, mma_op<T>, &s, "mma.m16n8k16");
}

// ---- sm_90a: a product is done at the wait, from shared memory as it is then.
#define ATS_HAS_WGMMA 1

inline unsigned char *align_shared(unsigned char *p, uintptr_t alignment)
{
    const uintptr_t at = uintptr_t(p - cuemu::shared_memory());
    return p + (alignment - at % alignment) % alignment;
}

// Addresses of shared memory start at 1024, as on a device, which keeps the first 1024 bytes.
inline uint64_t matrix_descriptor(const unsigned char *p, uint32_t leading, uint32_t stride)
{
    const uint64_t at = uint64_t(p - cuemu::shared_memory()) + 1024;
    if (at % 16 != 0 || at >= 1 << 18) cuemu::fail("wgmma: a matrix at %lu", (unsigned long)at);
    return at >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | uint64_t(1) << 62;
}

inline void fence_proxy_async() { cuemu::fiber().unfenced = false; }
inline void wgmma_fence() { cuemu::fiber().registers_ready = true; }

// One element of the matrix that a descriptor names: `along` counts elements that lie side by side,
// `across` rows of 128 bytes; bits 4 to 6 of an address are exchanged with bits 7 to 9.
template <class T> float matrix_element(uint64_t descriptor, int along, int across)
{
    if (descriptor >> 62 != 1) cuemu::fail("wgmma: only the 128-byte swizzle is known");
    const uint64_t start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4,
                   stride = (descriptor >> 32 & 0x3fff) << 4;
    uint64_t at = start + uint64_t(along / 64) * leading + uint64_t(across / 8) * stride +
                  uint64_t(across % 8) * 128 + uint64_t(along % 64) * 2;
    at ^= at >> 3 & 0x70;
    uint16_t bits;
    memcpy(&bits, cuemu::shared_memory() + (at - 1024), 2);
    return half_of<T>(bits, 0);
}

// Product `index` of every lane of a warp.
template <class T> void group_product(void **slot, size_t index)
{
    const auto of = [slot, index](int lane) -> const cuemu::GroupProduct & {
        return (*static_cast<std::vector<cuemu::GroupProduct> *>(slot[lane]))[index];
    };
    const cuemu::GroupProduct &p = of(0);
    const int warp = int(cuemu::fiber().tid.x / 32 % 4);
    float a[16][16], b[64][16];
    for (int lane = 0; lane < 32 && p.registers; lane++)
        for (int i = 0; i < 8; i++)
            a[lane / 4 + i / 2 % 2 * 8][lane % 4 * 2 + i % 2 + i / 4 * 8] =
                half_of<T>(of(lane).r[i / 2], i % 2);
    for (int row = 0; row < 16 && !p.registers; row++)
        for (int k = 0; k < 16; k++) a[row][k] = matrix_element<T>(p.a, k, warp * 16 + row);
    for (int n = 0; n < 64; n++)
        for (int k = 0; k < 16; k++)
            b[n][k] = p.registers ? matrix_element<T>(p.b, n, k) : matrix_element<T>(p.b, k, n);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 32; i++) {
            const float *row = a[lane / 4 + i / 2 % 2 * 8];
            const float *column = b[i / 4 * 8 + lane % 4 * 2 + i % 2];
            float *d = of(lane).d + i, sum = 0;
            for (int k = 0; k < 16; k++) sum += row[k] * column[k];
            *d = p.add ? *d + sum : sum;
        }
}

inline void issue(const cuemu::GroupProduct &product)
{
    cuemu::Fiber &f = cuemu::fiber();
    if (f.unfenced) cuemu::fail("wgmma: copies are not fenced");
    if (!f.registers_ready) cuemu::fail("wgmma: no wgmma.fence since the registers were used");
    f.products.push_back(product);
}

template <class T> void wgmma_ss(float (&d)[8][4], uint64_t a, uint64_t b, bool add)
{
    issue({&d[0][0], a, b, {0, 0, 0, 0}, false, add, group_product<T>});
}

template <class T> void wgmma_rs(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b)
{
    issue({&d[0][0], 0, b, {a[0], a[1], a[2], a[3]}, true, true, group_product<T>});
}

inline void wgmma_commit() { cuemu::fiber().committed = cuemu::fiber().products.size(); }

template <int N> void wgmma_wait(float (&)[N][4])
{
    cuemu::Fiber &f = cuemu::fiber();
    if (f.committed != f.products.size()) cuemu::fail("wgmma: a wait without a commit");
    cuemu::collective(
        0xffffffffu,
        [](void **slot, unsigned) {
            const auto *first = static_cast<std::vector<cuemu::GroupProduct> *>(slot[0]);
            for (int lane = 1; lane < 32; lane++)
                if (static_cast<std::vector<cuemu::GroupProduct> *>(slot[lane])->size() !=
                    first->size())
                    cuemu::fail("wgmma: lanes issued different products");
            for (size_t i = 0; i < first->size(); i++) (*first)[i].run(slot, i);
        },
        &f.products, "wgmma.wait");
    f.products.clear();
    f.committed = 0;
    f.registers_ready = false;
}

template <int N> void change_registers()
{
    static_assert(N % 8 == 0 && N >= 24 && N <= 256, "setmaxnreg takes multiples of 8");
}
template <int N> void keep_registers() { change_registers<N>(); }
template <int N> void take_registers() { change_registers<N>(); }

inline void barrier_init(uint64_t *bar, int count) { cuemu::barrier_init(bar, count); }
inline void fence_barriers() { cuemu::barrier_fence(); }
inline void barrier_arrive(uint64_t *bar) { cuemu::barrier_arrive(bar, 0, "mbarrier.arrive"); }
inline void barrier_expect(uint64_t *bar, int bytes)
{
    cuemu::barrier_arrive(bar, bytes, "mbarrier.arrive.expect_tx");
}
inline void barrier_wait(uint64_t *bar, uint32_t parity) { cuemu::barrier_wait(bar, parity); }

// The box of a map, row by row of 128 bytes in shared memory; 16-byte parts of a row change places
// by bits 7 to 9 of the address. Elements outside of the matrix are 0.
inline void land_tile(const cuemu::TileCopy &copy)
{
    const cuemu::Map &map = cuemu::map_of(*copy.map);
    for (int r = 0; r < int(map.box[1]); r++)
        for (int c = 0; c < int(map.box[0]); c++) {
            uint64_t at = uint64_t(copy.shared - cuemu::shared_memory()) + uint64_t(r) * 128 +
                          uint64_t(c) * 2;
            at ^= at >> 3 & 0x70;
            const int64_t row = copy.row + r, column = copy.column + c;
            uint16_t bits = 0;
            if (row >= 0 && row < int64_t(map.size[1]) && column >= 0 &&
                column < int64_t(map.size[0]))
                memcpy(&bits, map.base + row * int64_t(map.stride) + column * 2, 2);
            memcpy(cuemu::shared_memory() + at, &bits, 2);
        }
}

inline void copy_tile(void *shared, const CUtensorMap *map, int column, int row, uint64_t *bar)
{
    const uint64_t at = uint64_t(static_cast<unsigned char *>(shared) - cuemu::shared_memory());
    const long bytes = long(cuemu::map_of(*map).box[0] * cuemu::map_of(*map).box[1] * 2);
    if (at % 128 != 0) cuemu::fail("cp.async.bulk: a tile at %lu", (unsigned long)at);
    memset(shared, 0xff, size_t(bytes));
    cuemu::copy_tile({static_cast<unsigned char *>(shared), map, column, row, bar, land_tile, bytes});
}

inline float max_nan(float x, float y) { return x != x || x > y ? x : y; }

inline float exp2(float x)
{
    const float y = std::exp2(x);
    return y < 1.17549435e-38f ? 0.0f : y;
}

} // namespace ptx
