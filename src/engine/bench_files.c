#include "engine/bench_files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parallel.h"
#include "capture/synth.h"
#include "engine/run.h"
#include "h5/inflate.h"

typedef struct files {
    char folder[512], capture[600], result[600];
    double seconds;
    bool cpu_time;
} files;

static double clock_of(const files *f)
{
    struct timespec t;
    if (!f->cpu_time || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return ats_clock();
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / ats_threads();
}

static double file_bytes(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (double)info.st_size : 0;
}

static ats_code make_folder(const char *folder, files *out, ats_err *err)
{
    snprintf(out->folder, sizeof out->folder, "%s/attnstress-bench-XXXXXX", folder);
    if (mkdtemp(out->folder) == NULL)
        return ats_fail(err, ATS_E_IO, "no folder can be made in %s: %s; set TMPDIR", folder,
                        strerror(errno));
    snprintf(out->capture, sizeof out->capture, "%s/capture.h5", out->folder);
    snprintf(out->result, sizeof out->result, "%s/result.h5", out->folder);
    return ATS_OK;
}

static void remove_folder(const files *f)
{
    if (f->folder[0] == '\0') return;
    unlink(f->capture);
    unlink(f->result);
    rmdir(f->folder);
}

static ats_code open_inflater(const files *f, double bytes, ats_h5_inflater **out, ats_err *err)
{
    ats_h5_file file = {.id = 0};
    ats_h5_dataset k = {.id = 0};
    ats_code rc;
    ATS_TRY(ats_h5_open(f->capture, &file, err));
    ATS_TRY(ats_h5_dataset_open(&file, "/samples/0/layers/0/k", &k, err));
    ATS_TRY(ats_h5_inflater_open(&k, bytes, out, err));
out:
    ats_h5_dataset_close(&k);
    ats_h5_close(&file);
    return rc;
}

/* One layer, in the memory of the layer before, as a run does it. */
static ats_code load_layer(const ats_capture *capture, int64_t layer, ats_attention *last,
                           ats_err *err)
{
    ats_attention next = {.bytes = 0};
    const ats_code rc =
        ats_attention_reload(capture, layer / capture->n_layers, layer % capture->n_layers, 0,
                             capture->layers[0].n_kv_heads, NULL, last, &next, err);
    *last = next;
    return rc;
}

/* A layer, and as many bytes by zstd alone, in turns: what disturbs one disturbs the other. */
static ats_code measure_layer(const files *f, const ats_capture *capture, int64_t layer,
                              ats_attention *last, ats_h5_inflater *inflater, ats_bench_files *out,
                              ats_err *err)
{
    double bytes = 0, start = clock_of(f);
    ats_code rc;
    ATS_TRY(load_layer(capture, layer, last, err));
    const double read = (double)last->bytes / (clock_of(f) - start);
    start = clock_of(f);
    ATS_TRY(ats_h5_inflater_run(inflater, &bytes, err));
    const double inflated = bytes / (clock_of(f) - start);
    if (read > out->read) out->read = read;
    if (inflated > out->inflate) out->inflate = inflated;
out:
    return rc;
}

static ats_code measure_reading(const files *f, ats_bench_files *out, ats_err *err)
{
    ats_capture *capture = NULL;
    ats_attention last = {.bytes = 0};
    ats_h5_inflater *inflater = NULL;
    ats_code rc;
    ATS_TRY(ats_capture_open(f->capture, &capture, err));
    const int64_t layers = capture->n_samples * capture->n_layers;
    for (int64_t i = 0; i < layers; i++) {
        ATS_TRY(load_layer(capture, i, &last, err));
        out->decoded += (double)last.bytes;
    }
    ATS_TRY(open_inflater(f, (double)last.bytes, &inflater, err));
    const double until = ats_clock() + 2 * f->seconds;
    for (int64_t i = 0; i < 3 * layers || ats_clock() < until; i++)
        ATS_TRY(measure_layer(f, capture, i % layers, &last, inflater, out, err));
    out->stored = file_bytes(f->capture);
out:
    ats_h5_inflater_close(inflater);
    ats_attention_fini(&last);
    ats_capture_close(capture);
    return rc;
}

static const char suite_text[] =
    "suite: bench\n"
    "version: 1\n"
    "select: {probes: all}\n"
    "spans: {target: gold}\n"
    "perturbations:\n"
    "  - {name: distractors, kind: distractors, positions: overlay, "
    "count: [1, 2, 4, 8, 16, 32]}\n"
    "  - {name: windows, kind: mask_window, pattern: slide, "
    "width: 32, at: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]}\n"
    "output: {detail: probe}\n";

/* The share of the run in which writing was smallest beside the rest. */
static ats_code measure_writing(const files *f, ats_bench_files *out, ats_err *err)
{
    ats_suite *suite = NULL;
    ats_plan *plan = NULL;
    const char *captures[] = {f->capture};
    const ats_plan_options options = {.captures = captures, .n_captures = 1, .backend = "cpu"};
    ats_code rc;
    ATS_TRY(ats_suite_parse("bench", suite_text, NULL, 0, &suite, err));
    ATS_TRY(ats_plan_make(suite, &options, &plan, err));
    out->cases = (long long)plan->n_cases;
    for (int round = 0; round < 3; round++) {
        ats_outcome outcome = {.n_cases = 0};
        unlink(f->result);
        rc = ats_run(plan, f->result, &outcome, err);
        if (rc == ATS_OK && (round == 0 || outcome.total < out->total)) {
            out->total = outcome.total;
            out->write = outcome.write;
        }
        ats_outcome_fini(&outcome);
        if (rc != ATS_OK) goto out;
    }
    out->result = file_bytes(f->result);
out:
    ats_plan_free(plan);
    ats_suite_free(suite);
    return rc;
}

ats_code ats_bench_files_measure(const char *folder, bool quick, bool cpu_time, double seconds,
                                 ats_bench_files *out, ats_err *err)
{
    files f = {.seconds = seconds, .cpu_time = cpu_time};
    ats_synth_options synth = ats_synth_defaults();
    ats_code rc;
    *out = (ats_bench_files){0};
    synth.samples = 2;
    synth.layers = quick ? 2 : 4;
    synth.n_keys = quick ? 4096 : 16384;
    synth.n_q_heads = 8;
    synth.n_kv_heads = 2;
    synth.n_probes = 8;
    synth.d_qk = synth.d_v = 128;
    ATS_TRY(make_folder(folder, &f, err));
    ATS_TRY(ats_synth_write(&synth, f.capture, NULL, err));
    ATS_TRY(measure_reading(&f, out, err));
    ATS_TRY(measure_writing(&f, out, err));
out:
    remove_folder(&f);
    return rc;
}
