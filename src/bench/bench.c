#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/parallel.h"

void ats_bench_init(ats_bench *bench, bool quick)
{
    *bench = (ats_bench){.threads = ats_threads(), .seconds = quick ? 0.15 : 1.0, .quick = quick};
}

void ats_bench_fini(ats_bench *bench)
{
    free(bench->rows);
    *bench = (ats_bench){0};
}

ats_code ats_bench_add(ats_bench *bench, const ats_bench_row *row, ats_err *err)
{
    if (bench->n_rows == bench->capacity) {
        const int64_t capacity = bench->capacity > 0 ? 2 * bench->capacity : 32;
        ats_bench_row *rows = realloc(bench->rows, (size_t)capacity * sizeof *rows);
        if (rows == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory for a row of `bench`");
        bench->rows = rows;
        bench->capacity = capacity;
    }
    bench->rows[bench->n_rows++] = *row;
    return ATS_OK;
}

const char *ats_bench_verdict(const ats_bench_row *row)
{
    if (isnan(row->must) || isnan(row->value)) return "";
    if (row->at_most ? row->value <= row->goal : row->value >= row->goal) return "goal";
    if (row->at_most ? row->value <= row->must : row->value >= row->must) return "must";
    return "missed";
}

static double clock_of(const ats_bench *bench)
{
    struct timespec t;
    if (!bench->cpu_time || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return ats_clock();
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / ats_threads();
}

ats_code ats_bench_time(const ats_bench *bench, ats_bench_timed *things, int64_t n, ats_err *err)
{
    const double limit = bench->seconds * (double)n;
    double spent = 0;
    for (int64_t i = 0; i < n; i++) things[i].best = (double)INFINITY;
    for (int64_t round = 0; round < 3 || spent < limit; round++)
        for (int64_t i = 0; i < n; i++) {
            const double start = clock_of(bench);
            const ats_code rc = things[i].run(things[i].ctx, err);
            if (rc != ATS_OK) return rc;
            const double took = clock_of(bench) - start;
            if (took < things[i].best) things[i].best = took;
            spent += took;
        }
    return ATS_OK;
}
