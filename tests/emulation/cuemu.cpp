// The emulator's scheduler: fibers, barriers, warp collectives, deadlock reports.
#include "cuemu_private.h"

#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>

#if !defined(__x86_64__)
#include <ucontext.h>
#define CUEMU_UCONTEXT 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define CUEMU_ASAN 1
#endif

namespace cuemu {

enum { RUNS, AT_BARRIER, IN_WARP, AWAITS, DONE };
enum Order { FORWARD, REVERSE, SHUFFLED, GREEDY, GREEDY_SHUFFLED, N_ORDERS };
static const char *const ORDERS[] = {"forward", "reverse", "shuffled", "greedy", "greedy-shuffled"};
static const size_t STACK = 128 * 1024, SHARED_ALIGN = 1024;

// Everything of one OS thread; emulated blocks never leave it.
struct Thread {
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<char *> stacks;
    Fiber scheduler;
    Block block;
    const std::function<void()> *body;
    Fiber *current;
#if CUEMU_ASAN
    void *scheduler_fake;
    const void *scheduler_bottom;
    size_t scheduler_size;
#endif
    ~Thread()
    {
        for (char *s : stacks) munmap(s, STACK);
    }
};
static thread_local Thread the_thread;
static __thread Thread *me; // a fiber may not touch thread_local objects of others' making

Fiber &fiber() { return *me->current; }
Block &block() { return me->block; }

void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "cuemu: ");
    if (me != nullptr && me->current != nullptr)
        fprintf(stderr, "block (%u, %u, %u) thread %u: ", me->block.index.x, me->block.index.y,
                me->block.index.z, me->current->tid.x);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

#if CUEMU_UCONTEXT
static void change_stack(Fiber *from, Fiber *to)
{
    swapcontext(static_cast<ucontext_t *>(from->stack_pointer),
                static_cast<ucontext_t *>(to->stack_pointer));
}
#else
extern "C" void cuemu_change_stack(void **save, void *to);
asm(".text\n.type cuemu_change_stack,@function\ncuemu_change_stack:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size cuemu_change_stack,.-cuemu_change_stack\n");
static void change_stack(Fiber *from, Fiber *to)
{
    cuemu_change_stack(&from->stack_pointer, to->stack_pointer);
}
#endif

static void to_scheduler()
{
    Thread *t = me;
#if CUEMU_ASAN
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(t->current->state == DONE ? nullptr : &fake,
                                   t->scheduler_bottom, t->scheduler_size);
#endif
    change_stack(t->current, &t->scheduler);
#if CUEMU_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

static void to_fiber(Fiber *f)
{
    Thread *t = me;
    t->current = f;
#if CUEMU_ASAN
    __sanitizer_start_switch_fiber(&t->scheduler_fake, f->stack, STACK);
#endif
    change_stack(&t->scheduler, f);
#if CUEMU_ASAN
    __sanitizer_finish_switch_fiber(t->scheduler_fake, nullptr, nullptr);
#endif
    t->current = nullptr;
}

static void release_barrier()
{
    Block &b = me->block;
    b.waiting = 0;
    std::copy(b.reduced, b.reduced + 3, b.result);
    b.reduced[COUNT] = 0;
    b.reduced[AND] = 1;
    b.reduced[OR] = 0;
    for (Fiber &f : me->fibers)
        if (f.state == AT_BARRIER) f.state = RUNS;
}

static void complete_collective(Warp *w, unsigned mask)
{
    const unsigned need = mask & w->present, gone = need & ~w->alive;
    if (gone != 0)
        fail("%s: lanes %08x of mask %08x have already returned", fiber().where, gone, mask);
    if (need == 0 || (w->arrived & need) != need) return;
    WarpOp op = nullptr;
    for (unsigned lane = 0; lane < 32; lane++) {
        if ((need >> lane & 1) == 0) continue;
        if (w->want[lane] != mask)
            fail("%s: lane %u came with mask %08x, another with %08x", w->lane[lane]->where, lane,
                 w->want[lane], mask);
        if (op != nullptr && op != w->op[lane])
            fail("%s: lanes of one mask are in different operations", w->lane[lane]->where);
        op = w->op[lane];
    }
    op(w->slot, need);
    w->arrived &= ~need;
    for (unsigned lane = 0; lane < 32; lane++)
        if (need >> lane & 1) w->lane[lane]->state = RUNS;
}

static void run_fiber()
{
#if CUEMU_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &me->scheduler_bottom, &me->scheduler_size);
#endif
    (*me->body)();
    Fiber *f = me->current;
    Warp *w = f->warp;
    if (!f->copies.empty()) fail("returns with %zu copies on their way", f->copies.size());
    if (!f->products.empty()) fail("returns with products on their way");
    f->state = DONE;
    w->alive &= ~(1u << f->lane);
    // Threads that returned no longer count at barriers (sm_70 and later).
    if (--me->block.alive > 0 && me->block.waiting == me->block.alive) release_barrier();
    for (unsigned lane = 0; lane < 32; lane++)
        if (w->arrived >> lane & 1) complete_collective(w, w->want[lane]);
    to_scheduler();
    __builtin_trap();
}

void barrier(const char *where)
{
    Fiber *f = me->current;
    f->where = where;
    if (++me->block.waiting < me->block.alive) {
        f->state = AT_BARRIER;
        to_scheduler();
        return;
    }
    for (const Fiber &other : me->fibers)
        if (other.state == AT_BARRIER && other.where != where)
            fail("the barrier at %s meets the one at %s", where, other.where);
    release_barrier();
}

int barrier_reduce(const char *where, bool predicate, int kind)
{
    Block &b = me->block;
    b.reduced[COUNT] += predicate;
    b.reduced[AND] &= predicate;
    b.reduced[OR] |= predicate;
    barrier(where);
    return b.result[kind];
}

void collective(unsigned mask, WarpOp op, void *slot, const char *where)
{
    Fiber *f = me->current;
    Warp *w = f->warp;
    f->where = where;
    if ((mask >> f->lane & 1) == 0)
        fail("%s: the calling lane %u is not in mask %08x", where, f->lane, mask);
    w->slot[f->lane] = slot;
    w->want[f->lane] = mask;
    w->op[f->lane] = op;
    w->arrived |= 1u << f->lane;
    f->state = IN_WARP;
    complete_collective(w, mask);
    if (f->state != RUNS) to_scheduler();
}

void shuffle_op(void **slot, unsigned lanes)
{
    for (unsigned lane = 0; lane < 32; lane++) {
        if ((lanes >> lane & 1) == 0) continue;
        Shuffle *s = static_cast<Shuffle *>(slot[lane]);
        if ((lanes >> s->source & 1) == 0) fail("shuffle from lane %u outside the mask", s->source);
        s->out = static_cast<Shuffle *>(slot[s->source])->in;
    }
}

static void vote_op(void **slot, unsigned lanes)
{
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        if (lanes >> lane & 1)
            result |= unsigned(static_cast<Vote *>(slot[lane])->in) << lane;
    for (unsigned lane = 0; lane < 32; lane++)
        if (lanes >> lane & 1) static_cast<Vote *>(slot[lane])->out = result;
}

unsigned vote(unsigned mask, bool predicate, const char *where)
{
    Vote v{predicate, 0};
    collective(mask, vote_op, &v, where);
    return v.out;
}

static Barrier &find_barrier(const void *at, const char *what)
{
    for (Barrier *b : me->block.barriers)
        if (b->at == at) return *b;
    fail("%s: no barrier was made there", what);
}

static void end_phase(Barrier &b)
{
    if (b.pending > 0 || b.bytes > 0) return;
    b.phase++;
    b.pending = b.count;
    for (Fiber &f : me->fibers)
        if (f.state == AWAITS && f.awaited == &b) f.state = RUNS;
}

void barrier_init(const void *at, int count)
{
    if (reinterpret_cast<uintptr_t>(at) % 8 != 0 || count < 1) fail("mbarrier.init: count %d", count);
    for (const Barrier *b : me->block.barriers)
        if (b->at == at) fail("mbarrier.init: there is a barrier already");
    me->block.barriers.push_back(new Barrier{at, unsigned(count), unsigned(count), 0, 0, false});
}

void barrier_fence()
{
    for (Barrier *b : me->block.barriers) b->fenced = true;
}

void barrier_arrive(const void *at, long bytes, const char *what)
{
    Barrier &b = find_barrier(at, what);
    b.bytes += bytes;
    b.pending--;
    end_phase(b);
}

static void land_bytes(const void *at, long bytes)
{
    Barrier &b = find_barrier(at, "complete_tx");
    b.bytes -= bytes;
    if (b.bytes < 0) fail("mbarrier: %ld bytes more than were announced", -b.bytes);
    end_phase(b);
}

void barrier_wait(const void *at, unsigned parity)
{
    Fiber *f = me->current;
    Barrier &b = find_barrier(at, "mbarrier.try_wait");
    f->where = "mbarrier.try_wait";
    f->awaited = &b;
    while ((b.phase & 1) == parity) {
        f->state = AWAITS;
        to_scheduler();
    }
}

void copy_tile(const TileCopy &copy)
{
    if (!find_barrier(copy.barrier, "cp.async.bulk").fenced)
        fail("cp.async.bulk: the barrier is not fenced");
    me->block.copies.push_back(copy);
}

static void prepare_fiber(Fiber &f, size_t index)
{
    Thread *t = me;
    while (t->stacks.size() <= index) {
        void *p = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) fail("no memory for a stack");
        t->stacks.push_back(static_cast<char *>(p));
    }
    f.stack = t->stacks[index];
    f.state = RUNS;
    f.where = "its start";
    f.copies.clear();
    f.groups = 0;
    f.products.clear();
    f.committed = 0;
    f.unfenced = false;
    f.registers_ready = false;
#if CUEMU_ASAN
    __asan_unpoison_memory_region(f.stack, STACK);
#endif
#if CUEMU_UCONTEXT
    ucontext_t *u = reinterpret_cast<ucontext_t *>(f.stack + STACK - 2048);
    getcontext(u);
    u->uc_stack.ss_sp = f.stack;
    u->uc_stack.ss_size = STACK - 4096;
    u->uc_link = nullptr;
    makecontext(u, run_fiber, 0);
    f.stack_pointer = u;
#else
    void **s = reinterpret_cast<void **>(f.stack + STACK - 64);
    *--s = nullptr;
    *--s = reinterpret_cast<void *>(run_fiber);
    s -= 6;
    memset(s, 0, 48);
    f.stack_pointer = s;
#endif
}

static int wanted_order()
{
    const char *name = getenv("CUEMU_ORDER");
    if (name == nullptr) return FORWARD;
    for (int i = 0; i < N_ORDERS; i++)
        if (strcmp(ORDERS[i], name) == 0) return i;
    fail("CUEMU_ORDER is \"%s\"", name);
}

static unsigned wanted_seed()
{
    const char *seed = getenv("CUEMU_SEED");
    return seed != nullptr ? unsigned(strtoul(seed, nullptr, 10)) : 1u;
}

static void report_deadlock()
{
    for (const Fiber &f : me->fibers)
        if (f.state != DONE && f.lane % 8 == 0)
            fprintf(stderr, "  thread %u waits %s at %s\n", f.tid.x,
                    f.state == AT_BARRIER ? "for the block"
                    : f.state == AWAITS   ? "for a phase"
                                          : "for its warp",
                    f.where);
    fail("deadlock: no thread can go on (%u alive, %u at a barrier)", me->block.alive,
         me->block.waiting);
}

// One warp runs as far as it can; the others only when it waits for the block.
static bool run_greedily(const std::vector<unsigned> &warps)
{
    for (unsigned w : warps) {
        bool ran = false;
        for (bool more = true; more;) {
            more = false;
            for (Fiber *f : me->warps[w].lane)
                if (f != nullptr && f->state == RUNS) {
                    to_fiber(f);
                    more = ran = true;
                }
        }
        if (ran) return true;
    }
    return false;
}

static bool run_in_turn(const std::vector<unsigned> &threads)
{
    bool ran = false;
    for (unsigned i : threads)
        if (me->fibers[i].state == RUNS) {
            to_fiber(&me->fibers[i]);
            ran = true;
        }
    return ran;
}

static void land_copy(size_t index)
{
    const TileCopy copy = me->block.copies[index];
    me->block.copies.erase(me->block.copies.begin() + long(index));
    copy.land(copy);
    land_bytes(copy.barrier, copy.bytes);
}

static void run_fibers(unsigned seed)
{
    static const int order = wanted_order();
    std::mt19937 random(seed);
    const bool eager = order == REVERSE || order == SHUFFLED || order == GREEDY_SHUFFLED;
    std::vector<unsigned> threads(me->fibers.size()), warps(me->warps.size());
    std::iota(threads.begin(), threads.end(), 0u);
    std::iota(warps.begin(), warps.end(), 0u);
    if (order == REVERSE) std::reverse(threads.begin(), threads.end());
    if (order == GREEDY) std::reverse(warps.begin(), warps.end());
    if (order == GREEDY_SHUFFLED) std::shuffle(warps.begin(), warps.end(), random);
    while (me->block.alive > 0) {
        if (order == SHUFFLED) std::shuffle(threads.begin(), threads.end(), random);
        const bool ran = order < GREEDY ? run_in_turn(threads) : run_greedily(warps);
        const size_t copies = me->block.copies.size();
        // As late as a device may, or in any order before that.
        if (copies > 0 && (!ran || (eager && random() % 2 == 0)))
            land_copy(order == REVERSE ? copies - 1 : eager ? random() % copies : 0);
        else if (!ran)
            report_deadlock();
    }
}

static void run_block(const Launch &launch, uint3 index, unsigned seed)
{
    Thread *t = me = &the_thread;
    const unsigned n = launch.size.x;
    // Exactly as long as asked for, so that AddressSanitizer sees the first byte past it.
    void *shared = nullptr;
    if (posix_memalign(&shared, SHARED_ALIGN, std::max<size_t>(launch.shared, 1)) != 0)
        fail("no memory for shared memory");
    const std::unique_ptr<void, void (*)(void *)> owner(shared, free);
    memset(shared, 0xff, launch.shared);
    t->fibers.resize(n);
    t->warps.assign((n + 31) / 32, Warp{});
    t->body = &launch.thread;
    t->block = Block{launch.grid,   launch.size, index, n, 0, static_cast<unsigned char *>(shared),
                     {0, 1, 0}, {0, 0, 0}, {}, {}};
    for (unsigned i = 0; i < n; i++) {
        Fiber &f = t->fibers[i];
        prepare_fiber(f, i);
        f.tid = uint3{i, 0, 0};
        f.lane = i % 32;
        f.warp = &t->warps[i / 32];
        f.warp->present |= 1u << f.lane;
        f.warp->alive |= 1u << f.lane;
        f.warp->lane[f.lane] = &f;
    }
#if CUEMU_UCONTEXT
    ucontext_t context;
    t->scheduler.stack_pointer = &context;
#endif
    run_fibers(seed);
    if (!t->block.copies.empty())
        fail("the block ends with %zu tiles on their way", t->block.copies.size());
    for (const Barrier *b : t->block.barriers) delete b;
}

void run(const Launch &launch)
{
    static const unsigned seed = wanted_seed();
    unsigned number = 0;
    for (unsigned z = 0; z < launch.grid.z; z++)
        for (unsigned y = 0; y < launch.grid.y; y++)
            for (unsigned x = 0; x < launch.grid.x; x++)
                run_block(launch, uint3{x, y, z}, seed + number++);
    me = nullptr;
}

} // namespace cuemu
