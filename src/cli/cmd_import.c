#include "base/log.h"
#include "capture/import.h"
#include "cli/command.h"
#include "engine/version.h"

static const ats_option options[] = {
    {"output", 'o', ATS_OPT_VALUE, "CAPTURE", "Capture file to write.", true},
};

static void print_scales(const ats_import_report *report)
{
    for (int64_t i = 0; i < report->n_layers; i++) {
        const ats_import_layer_note *note = &report->layers[i];
        if (note->scale == note->stated_scale) continue;
        printf(
            "layer %lld: effective scale %.12g (stated %.12g, rotary magnitude and mscale %.12g)\n",
            (long long)note->layer, note->scale, note->stated_scale,
            note->scale / note->stated_scale);
    }
}

static void print_notes(const ats_import_report *report)
{
    if (report->n_unused > 0)
        ats_info("%lld of %lld tensors are not used, %s the first; names in the header say which "
                 "are",
                 (long long)report->n_unused, (long long)report->n_tensors, report->first_unused);
    if (report->rounded > 0)
        ats_info("%lld tensors of float64 are stored as float32", (long long)report->rounded);
    if (report->tokens_unknown) ats_info("token ids are not given and stored as -1");
    if (report->bias_like_mask)
        ats_warn("a bias holds 0 and 1 alone, as a boolean mask would; a mask belongs under "
                 "names.keep, as booleans or bytes");
}

static ats_code run(const ats_args *args, ats_err *err)
{
    ats_arena arena;
    ats_import_report report = {0};
    const char *producer = NULL, *path = ats_args_value(args, "output");
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_arena_printf(&arena, &producer, err, "attnstress import %s", ats_version()));
    const ats_import_options import = {.header = args->operands[0],
                                       .n_files = args->n_operands - 1,
                                       .files = args->operands + 1,
                                       .output = path,
                                       .producer = producer};
    ATS_TRY(ats_import(&import, &arena, &report, err));
    printf("%s: %lld samples, %lld layers, %lld keys\n", path, (long long)report.n_samples,
           (long long)report.n_layers, (long long)report.n_keys);
    print_scales(&report);
    print_notes(&report);
    printf("next: attnstress verify %s\n", path);
out:
    ats_arena_fini(&arena);
    return rc;
}

const ats_command ats_cmd_import = {
    .name = "import",
    .operands = "HEADER.yaml TENSORS...",
    .min_operands = 2,
    .max_operands = 1 << 20,
    .summary = "make a capture of safetensors, npy or npz files",
    .examples = "attnstress import header.yaml tensors.safetensors -o my.h5\n"
                "attnstress import header.yaml dump/*.npy -o my.h5\n"
                "attnstress import header.yaml dump.npz -o my.h5 && attnstress verify my.h5",
    .details = "The header says what tensor files cannot: scale, rotary embedding, masks,\n"
               "spans, probes. docs/import.md lists its keys and has recipes for\n"
               "TransformerLens, vLLM and kvpress. A tensor of a safetensors file or npz\n"
               "archive is named as there, one of an npy file after the file. Words of\n"
               "float16, bfloat16 and float32 are kept bit for bit. Nothing is unpickled.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
