#include <math.h>
#include <string.h>

#include "base/log.h"
#include "capture/synth.h"
#include "cli/command.h"
#include "cli/output.h"

static const ats_option options[] = {
    {"output", 'o', ATS_OPT_VALUE, "CAPTURE", "Capture file to write.", true},
    {"truth", 0, ATS_OPT_VALUE, "FILE", "Write the planted truth there, as JSON.", false},
    {"seed", 0, ATS_OPT_VALUE, "N", "Seed of all random numbers (1).", false},
    {"samples", 0, ATS_OPT_VALUE, "N", "Samples (2).", false},
    {"layers", 0, ATS_OPT_VALUE, "N", "Layers (2).", false},
    {"q-heads", 0, ATS_OPT_VALUE, "N", "Query heads (4).", false},
    {"kv-heads", 0, ATS_OPT_VALUE, "N", "Key heads (2).", false},
    {"keys", 0, ATS_OPT_VALUE, "N", "Keys of each sample (1024).", false},
    {"probes", 0, ATS_OPT_VALUE, "N", "Probes: the last rows of each sample (4).", false},
    {"d-qk", 0, ATS_OPT_VALUE, "N", "Width of queries and keys (64).", false},
    {"d-v", 0, ATS_OPT_VALUE, "N", "Width of values (64).", false},
    {"dtype", 0, ATS_OPT_VALUE, "TYPE", "float32, float16 or bfloat16 (bfloat16).", false},
    {"gold-mass", 0, ATS_OPT_VALUE, "X", "Mass planted on the span gold (0.4).", false},
    {"distractors", 0, ATS_OPT_VALUE, "N", "Distractor spans (4).", false},
    {"distractor-mass", 0, ATS_OPT_VALUE, "X", "Mass planted on each of them (0.03).", false},
    {"window", 0, ATS_OPT_VALUE, "N", "Sliding window in keys (0: none).", false},
    {"chunk", 0, ATS_OPT_VALUE, "N", "Attention chunk in keys (0: none).", false},
    {"softcap", 0, ATS_OPT_VALUE, "X", "Soft cap of the logits (0: none).", false},
    {"rope", 0, ATS_OPT_VALUE, "LAYOUT", "half, interleaved or none (none).", false},
    {"sink", 0, ATS_OPT_FLAG, NULL, "Give every head a learned sink logit.", false},
    {"w-o", 0, ATS_OPT_FLAG, NULL, "Add output projections and readout directions.", false},
};

static ats_code choose_rope(const ats_args *args, ats_synth_options *out, ats_err *err)
{
    const char *layout = ats_args_value(args, "rope");
    if (layout == NULL || strcmp(layout, "none") == 0) return ATS_OK;
    out->rope = true;
    out->layout = ATS_ROPE_HALF;
    if (strcmp(layout, "half") == 0) return ATS_OK;
    out->layout = ATS_ROPE_INTERLEAVED;
    if (strcmp(layout, "interleaved") == 0) return ATS_OK;
    return ats_fail(err, ATS_E_USAGE, "--rope %s: it must be half, interleaved or none", layout);
}

static ats_code choose_dtype(const ats_args *args, ats_synth_options *out, ats_err *err)
{
    const char *name = ats_args_value(args, "dtype");
    if (name == NULL || ats_dtype_parse(name, &out->dtype)) return ATS_OK;
    return ats_fail(err, ATS_E_USAGE, "--dtype %s: it must be float32, float16 or bfloat16", name);
}

/* Ranges of single numbers; what depends on several of them is checked by synth itself. */
static ats_code choose(const ats_args *args, ats_synth_options *out, ats_err *err)
{
    const int64_t many = (int64_t)1 << 40;
    const struct {
        const char *name;
        int64_t *value, min;
    } counts[] = {{"samples", &out->samples, 1},
                  {"layers", &out->layers, 1},
                  {"q-heads", &out->n_q_heads, 1},
                  {"kv-heads", &out->n_kv_heads, 1},
                  {"keys", &out->n_keys, 1},
                  {"probes", &out->n_probes, 1},
                  {"d-qk", &out->d_qk, 1},
                  {"d-v", &out->d_v, 1},
                  {"distractors", &out->distractors, 0},
                  {"window", &out->window, 0},
                  {"chunk", &out->chunk, 0}};
    const struct {
        const char *name;
        double *value, max;
    } reals[] = {{"gold-mass", &out->gold_mass, 1},
                 {"distractor-mass", &out->distractor_mass, 1},
                 {"softcap", &out->softcap, 1e6}};
    int64_t seed = (int64_t)out->seed;
    ats_code rc;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        ATS_TRY(ats_args_int(args, counts[i].name, *counts[i].value, counts[i].min, many,
                             counts[i].value, err));
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        ATS_TRY(ats_args_real(args, reals[i].name, *reals[i].value, 0, reals[i].max, reals[i].value,
                              err));
    ATS_TRY(ats_args_int(args, "seed", seed, 0, INT64_MAX, &seed, err));
    out->seed = (uint64_t)seed;
    out->sink = ats_args_flag(args, "sink");
    out->w_o = ats_args_flag(args, "w-o");
    ATS_TRY(choose_rope(args, out, err));
    ATS_TRY(choose_dtype(args, out, err));
out:
    return rc;
}

static ats_code run(const ats_args *args, ats_err *err)
{
    ats_synth_options synth = ats_synth_defaults();
    const char *path = ats_args_value(args, "output");
    const char *truth = ats_args_value(args, "truth");
    ats_code rc;
    ATS_TRY(choose(args, &synth, err));
    if (truth != NULL && (strcmp(truth, path) == 0 || ats_output_same(truth, path))) {
        rc = ats_fail(err, ATS_E_USAGE,
                      "--truth and --output both name %s; give the truth a file of its own", path);
        goto out;
    }
    ATS_TRY(ats_synth_write(&synth, path, truth, err));
    printf("%s: %lld samples, %lld layers, %lld keys, gold %g, %lld distractors of %g\n", path,
           (long long)synth.samples, (long long)synth.layers, (long long)synth.n_keys,
           synth.gold_mass, (long long)synth.distractors, synth.distractor_mass);
    if (truth != NULL) printf("planted truth: %s\n", truth);
    printf("next: attnstress verify %s\n", path);
out:
    return rc;
}

const ats_command ats_cmd_synth = {
    .name = "synth",
    .operands = "",
    .min_operands = 0,
    .max_operands = 0,
    .summary = "write a synthetic capture with planted, known truth",
    .examples =
        "attnstress synth -o small.h5 --truth small.json\n"
        "attnstress synth -o rope.h5 --rope half --gold-mass 0.6 --distractors 8\n"
        "attnstress synth -o long.h5 --keys 131072 --samples 1 --layers 1 --dtype float16\n"
        "attnstress synth -o gemma-like.h5 --rope half --window 512 --softcap 50 --d-qk 256",
    .details = "Every span's mass at every head and probe is the number asked for, up to\n"
               "the precision of the stored words. The truth file states what it really\n"
               "is, computed in double from those words, and the number of exact copies of\n"
               "the strongest distractor (inserted in overlay) at which gold keeps half of\n"
               "its mass. Equal options give equal bytes, whatever the number of threads.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
