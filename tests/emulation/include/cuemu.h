// CUDA kernels on the CPU, for functional tests: one fiber per CUDA thread, the blocks of a launch
// one after the other on the thread that synchronises the stream.
//
// What it can show: wrong indices, a missing barrier or wait (under one of the schedules), reads
// outside an array (with AddressSanitizer), memory nobody wrote (it is NaN), collectives that some
// lanes miss, host code that reads before it synchronises. What it cannot: ptxas, weak memory
// order, bank conflicts, rounding inside matrix units.
// Shared memory is dynamic only: static arrays would keep their contents between blocks, so
// __shared__ does not compile.
#pragma once
#ifdef __CUDACC__
#error "cuemu.h is for host compilers"
#endif
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cuda.h>

#undef __shared__
#undef __global__
#undef __device__
#undef __host__
#undef __launch_bounds__
#undef __forceinline__
#undef __grid_constant__
#define __global__
#define __device__
#define __grid_constant__
#define __host__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ ATS_LAUNCH_GIVES_DYNAMIC_SHARED_MEMORY_ONLY

namespace cuemu {

struct Warp;

struct Copy { // a cp.async on its way
    void *shared;
    const void *global;
    int bytes, group;
};

struct GroupProduct { // a wgmma on its way
    float *d;
    uint64_t a, b; // descriptors
    uint32_t r[4];
    bool registers, add;
    void (*run)(void **slot, size_t index);
};

struct Barrier { // an mbarrier
    const void *at;
    unsigned count, pending, phase; // phases that are over
    long bytes;                     // announced and not there yet
    bool fenced;                    // visible to copies
};

struct TileCopy { // a cp.async.bulk.tensor on its way
    unsigned char *shared;
    const CUtensorMap *map;
    int column, row;
    const void *barrier;
    void (*land)(const TileCopy &copy);
    long bytes;
};

struct Fiber {
    uint3 tid;
    unsigned lane;
    Warp *warp;
    void *stack_pointer;
    char *stack;
    int state;
    const char *where;
    std::vector<Copy> copies;
    int groups; // committed
    std::vector<GroupProduct> products;
    size_t committed;
    bool unfenced;        // copies of its own are not visible to the matrix units
    bool registers_ready; // wgmma.fence since the last wait
    const Barrier *awaited;
};

// Computes a collective for all lanes of `lanes` through pointers to their own stacks.
using WarpOp = void (*)(void **slot, unsigned lanes);

struct Warp {
    unsigned present, alive, arrived;
    unsigned want[32];
    WarpOp op[32];
    void *slot[32];
    Fiber *lane[32];
};

struct Block {
    dim3 grid, size;
    uint3 index;
    unsigned alive, waiting;
    unsigned char *shared;
    int reduced[3], result[3]; // sum, and, or of the predicates of a barrier
    std::vector<TileCopy> copies;
    std::vector<Barrier *> barriers;
};

Fiber &fiber();
Block &block();
void barrier(const char *where);
enum { COUNT, AND, OR };
int barrier_reduce(const char *where, bool predicate, int kind);
void collective(unsigned mask, WarpOp op, void *slot, const char *where);
// Barriers in shared memory, and tile copies that report to them.
void barrier_init(const void *at, int count);
void barrier_fence();
void barrier_arrive(const void *at, long bytes, const char *what);
void barrier_wait(const void *at, unsigned parity);
void copy_tile(const TileCopy &copy);
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
inline unsigned char *shared_memory() { return block().shared; }

// What the emulated driver writes into a CUtensorMap.
struct Map {
    uint64_t magic;
    const unsigned char *base;
    uint64_t size[2], stride; // elements; bytes from row to row
    uint32_t box[2];
};
constexpr uint64_t MAP_MAGIC = 0x70616d726f736e74;

inline const Map &map_of(const CUtensorMap &map)
{
    const Map *m = reinterpret_cast<const Map *>(&map);
    if (m->magic != MAP_MAGIC) fail("a tensor map that nobody encoded");
    return *m;
}

// Checks the launch, and runs it when the stream is synchronised.
void enqueue_launch(const void *kernel, dim3 grid, dim3 size, size_t shared, cudaStream_t stream,
                    std::function<void()> thread);

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 size, size_t shared, cudaStream_t stream, A &&...a)
{
    std::tuple<P...> args{static_cast<P>(a)...};
    enqueue_launch(reinterpret_cast<const void *>(kernel), grid, size, shared, stream,
                   [=] { std::apply(kernel, args); });
}

struct Shuffle {
    uint64_t in, out;
    unsigned source;
};
void shuffle_op(void **slot, unsigned lanes);

template <class T> T shuffle(unsigned mask, T x, unsigned source, const char *where)
{
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "");
    Shuffle s{0, 0, source};
    memcpy(&s.in, &x, sizeof x);
    collective(mask, shuffle_op, &s, where);
    memcpy(&x, &s.out, sizeof x);
    return x;
}

struct Vote {
    bool in;
    unsigned out;
};
unsigned vote(unsigned mask, bool predicate, const char *where);

} // namespace cuemu

#define CUEMU_TEXT_(x) #x
#define CUEMU_TEXT(x) CUEMU_TEXT_(x)
#define CUEMU_HERE __FILE__ ":" CUEMU_TEXT(__LINE__)
#define threadIdx (cuemu::fiber().tid)
#define blockIdx (cuemu::block().index)
#define blockDim (cuemu::block().size)
#define gridDim (cuemu::block().grid)
#define __syncthreads() cuemu::barrier(CUEMU_HERE)
#define __syncthreads_and(p) cuemu::barrier_reduce(CUEMU_HERE, (p) != 0, cuemu::AND)
#define __syncthreads_or(p) cuemu::barrier_reduce(CUEMU_HERE, (p) != 0, cuemu::OR)
#define __shfl_xor_sync(mask, x, step) \
    cuemu::shuffle(mask, x, cuemu::fiber().lane ^ unsigned(step), CUEMU_HERE)
#define __shfl_sync(mask, x, source) cuemu::shuffle(mask, x, unsigned(source) & 31u, CUEMU_HERE)
#define __ballot_sync(mask, p) cuemu::vote(mask, (p) != 0, CUEMU_HERE)
#define __any_sync(mask, p) (cuemu::vote(mask, (p) != 0, CUEMU_HERE) != 0)
#define __all_sync(mask, p) (cuemu::vote(mask, !(p), CUEMU_HERE) == 0)
#define __syncwarp() ((void)cuemu::vote(0xffffffffu, true, CUEMU_HERE))
using std::max;
using std::min;
