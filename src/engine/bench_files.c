#include "engine/bench_files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "capture/synth.h"
#include "engine/run.h"
#include "h5/inflate.h"

typedef struct files {
    char folder[512], capture[600], result[600];
    double seconds;
} files;

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

static ats_code inflate_rate(const files *f, double *out, ats_err *err)
{
    ats_h5_file file = {.id = 0};
    ats_h5_dataset k = {.id = 0};
    ats_code rc;
    ATS_TRY(ats_h5_open(f->capture, &file, err));
    ATS_TRY(ats_h5_dataset_open(&file, "/samples/0/layers/0/k", &k, err));
    ATS_TRY(ats_h5_inflate_rate(&k, f->seconds, out, err));
out:
    ats_h5_dataset_close(&k);
    ats_h5_close(&file);
    return rc;
}

static ats_code load_all(const ats_capture *capture, double *bytes, ats_err *err)
{
    *bytes = 0;
    for (int64_t sample = 0; sample < capture->n_samples; sample++)
        for (int64_t layer = 0; layer < capture->n_layers; layer++) {
            ats_attention attention = {.q = NULL};
            const ats_code rc = ats_attention_load(capture, sample, layer, &attention, err);
            *bytes += (double)attention.bytes;
            ats_attention_fini(&attention);
            if (rc != ATS_OK) return rc;
        }
    return ATS_OK;
}

static ats_code measure_reading(const files *f, ats_bench_files *out, ats_err *err)
{
    ats_capture *capture = NULL;
    double best = (double)INFINITY, spent = 0;
    ats_code rc;
    ATS_TRY(ats_capture_open(f->capture, &capture, err));
    for (int round = 0; round < 3 || spent < f->seconds; round++) {
        const double start = ats_clock();
        ATS_TRY(load_all(capture, &out->decoded, err));
        const double took = ats_clock() - start;
        if (took < best) best = took;
        spent += took;
    }
    out->read = out->decoded / best;
    out->stored = file_bytes(f->capture);
    ATS_TRY(inflate_rate(f, &out->inflate, err));
out:
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

ats_code ats_bench_files_measure(const char *folder, bool quick, double seconds,
                                 ats_bench_files *out, ats_err *err)
{
    files f = {.seconds = seconds};
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
