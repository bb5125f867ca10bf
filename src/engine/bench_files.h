/* Reading captures and writing results, measured on synthetic files in a folder of their own that
 * is removed afterwards.
 * Ownership: nothing is handed out. */
#ifndef ATS_ENGINE_BENCH_FILES_H
#define ATS_ENGINE_BENCH_FILES_H

#include <stdbool.h>

#include "base/status.h"

typedef struct ats_bench_files {
    double decoded;      /* bytes of tensors of the capture */
    double stored;       /* bytes of its file */
    double read;         /* decoded bytes a second of a layer, best, from the page cache */
    double inflate;      /* decoded bytes a second of zstd alone, all threads, best */
    double total, write; /* seconds of a run, and of writing in it */
    double result;       /* bytes of its file */
    long long cases;
} ats_bench_files;

/* cpu_time: reading is measured in processor time over threads. folder: where there is room for a
 * few hundred MB. */
ATS_MUST_CHECK ats_code ats_bench_files_measure(const char *folder, bool quick, bool cpu_time,
                                                double seconds, ats_bench_files *out, ats_err *err);

#endif
