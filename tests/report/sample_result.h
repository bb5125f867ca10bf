/* A small result with every kind of variable, coordinate and attribute; its numbers are a
 * function of their place. Two samples of three cases, two layers, three heads (as long as the
 * top lists), two probes. */
#ifndef ATS_TESTS_REPORT_SAMPLE_RESULT_H
#define ATS_TESTS_REPORT_SAMPLE_RESULT_H

#include <stdbool.h>

#include "report/results.h"

enum { SAMPLES = 2, VARIANTS = 3, LAYERS = 2, HEADS = 3, PROBES = 2, SPANS = 5, TOP = 3, DV = 4 };

typedef struct sample_result {
    const char *compression;
    bool detail_head;
    int64_t batch;   /* cases in one write; 0: all of a sample */
    bool unfinished; /* abort at the end */
} sample_result;

ats_code sample_result_write(const char *path, const sample_result *how, ats_err *err);
/* Number x of a cell; NaN now and then. metric: its index in ats_metrics. */
float sample_number(int64_t metric, int64_t where, int64_t layer, int64_t cell);
int32_t sample_integer(int64_t metric, int64_t where, int64_t layer, int64_t cell);

#endif
