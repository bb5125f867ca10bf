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

inline float exp2(float x)
{
    const float y = std::exp2(x);
    return y < 1.17549435e-38f ? 0.0f : y;
}

} // namespace ptx
