/* What the machine can do and how much of it the kernels use: ratios measured in one process.
 *
 * Ceilings (multiply-add peak, memory bandwidth) and kernels are timed in turns, each as the best
 * of many repetitions, so that other work on the machine disturbs a ratio as little as it can.
 * This folder needs base, kernels and metrics alone; reading and writing files is measured by
 * engine/bench_io.h.
 * Ownership: an ats_bench owns its rows; one thread at a time. */
#ifndef ATS_BENCH_BENCH_H
#define ATS_BENCH_BENCH_H

#include "base/arena.h"
#include "kernels/backend.h"

typedef struct ats_bench_row {
    const char *key;   /* stable name */
    const char *group; /* "machine", "bars", "scaling" */
    char what[96];
    double value; /* NaN: not measured, the note says why */
    const char *unit;  /* "x", "%", "GB/s", "GFLOP/s", "ms" */
    double must, goal; /* NaN: no bar */
    bool at_most;      /* the smaller the better */
    char note[200];
} ats_bench_row;

typedef struct ats_bench {
    int threads;    /* that everything but a machine row uses */
    bool cpu_time;  /* processor time over threads in place of elapsed time: on a busy machine */
    double seconds; /* spent on each measurement, at least three repetitions */
    bool quick;     /* smaller problems */
    int64_t n_rows, capacity;
    ats_bench_row *rows;
    /* Ceilings with all threads, set by ats_bench_machine. */
    double flops, bandwidth; /* FLOP/s of fp32 multiply-add; bytes/s read from memory */
    double matrix_flops;     /* FLOP/s of bfloat16 tiles; 0 without matrix units */
} ats_bench;

void ats_bench_init(ats_bench *bench, bool quick);
void ats_bench_fini(ats_bench *bench);
/* Adds a copy of the row; `what` and `note` are cut where they are too long. */
ATS_MUST_CHECK ats_code ats_bench_add(ats_bench *bench, const ats_bench_row *row, ats_err *err);
/* "goal", "must", "missed", or "" for a row without a bar or without a value. */
const char *ats_bench_verdict(const ats_bench_row *row);

/* One thing to be timed. */
typedef struct ats_bench_timed {
    ats_code (*run)(void *ctx, ats_err *err);
    void *ctx;
    double best; /* seconds, set by ats_bench_time */
} ats_bench_timed;
/* Runs the things in turns until the time is spent; at least three times each. */
ATS_MUST_CHECK ats_code ats_bench_time(const ats_bench *bench, ats_bench_timed *things, int64_t n,
                                       ats_err *err);

/* A problem of random logits (standard deviation about 2), every key legal for every row. */
typedef struct ats_bench_shape {
    int64_t n_keys, heads, probes, d;
    ats_dtype dtype;
} ats_bench_shape;
ATS_MUST_CHECK ats_code ats_bench_problem(ats_arena *arena, const ats_bench_shape *shape,
                                          ats_problem *out, ats_err *err);
/* Edits with `rows` inserted (even ones) or masked in a window (odd ones), at random places. */
ATS_MUST_CHECK ats_code ats_bench_edits(ats_arena *arena, const ats_problem *problem, int64_t count,
                                        int64_t rows, ats_edit *out, ats_err *err);

/* For `emit` where only the time counts. */
ATS_MUST_CHECK ats_code ats_bench_ignore(void *ctx, int64_t variant, int worker,
                                         const ats_stats *base, const ats_stats *stats,
                                         ats_err *err);

/* The measurements, in the order in which `attnstress bench` makes them. */
ATS_MUST_CHECK ats_code ats_bench_machine(ats_bench *bench, ats_err *err);
ATS_MUST_CHECK ats_code ats_bench_sharing(ats_bench *bench, ats_err *err);
ATS_MUST_CHECK ats_code ats_bench_pass(ats_bench *bench, ats_err *err);
ATS_MUST_CHECK ats_code ats_bench_probes(ats_bench *bench, ats_err *err);
ATS_MUST_CHECK ats_code ats_bench_scaling(ats_bench *bench, ats_err *err);

#endif
