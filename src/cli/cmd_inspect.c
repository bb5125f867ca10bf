#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "cli/ending.h"
#include "cli/style.h"
#include "h5/attr.h"
#include "h5/dataset.h"

static const ats_option options[] = {
    {"values", 0, ATS_OPT_VALUE, "PATH", "print a dataset's values, one row of it a line", false},
    {"json", 0, ATS_OPT_FLAG, NULL, "a capture's contents as JSON", false},
};

static const char *positions_name(ats_positions positions)
{
    switch (positions) {
    case ATS_POSITIONS_ROPE:
        return "rope";
    case ATS_POSITIONS_ALIBI:
        return "alibi";
    case ATS_POSITIONS_NONE:
        return "none";
    case ATS_POSITIONS_ABSOLUTE:
        return "absolute";
    }
    return "";
}

static void print_layer(const ats_layer *layer)
{
    printf("  layer %lld: %lld query heads, %lld key heads, d_qk %lld, d_v %lld, scale %.6g",
           (long long)layer->index, (long long)layer->n_q_heads, (long long)layer->n_kv_heads,
           (long long)layer->d_qk, (long long)layer->d_v, layer->contract.scale);
    if (layer->contract.softcap > 0) printf(", softcap %g", layer->contract.softcap);
    if (layer->contract.window > 0) printf(", window %lld", (long long)layer->contract.window);
    if (layer->contract.chunk > 0) printf(", chunk %lld", (long long)layer->contract.chunk);
    printf(", %s, positions %s%s%s%s\n", layer->contract.causal ? "causal" : "bidirectional",
           positions_name(layer->positions), layer->sink != NULL ? ", sink" : "",
           layer->alibi_slope != NULL ? ", alibi" : "", layer->w_o != NULL ? ", w_o" : "");
}

static void print_sample(const ats_sample *sample)
{
    printf("  sample ");
    ats_print_text(sample->id);
    printf(": %lld keys", (long long)sample->n_keys);
    if (sample->variant_of != NULL) {
        printf(", variant of ");
        ats_print_text(sample->variant_of);
    }
    printf("\n    spans:");
    for (int64_t i = 0; i < sample->n_spans; i++) {
        const ats_span *span = &sample->spans[i];
        putchar(' ');
        ats_print_text(span->name);
        if (strcmp(span->name, span->role) != 0) {
            printf(" (");
            ats_print_text(span->role);
            putchar(')');
        }
        printf(" [%lld, %lld)%s", (long long)span->start, (long long)span->stop,
               i + 1 < sample->n_spans ? "," : "");
    }
    printf("\n    probes:");
    for (int64_t i = 0; i < sample->n_probes; i++) {
        printf(" %lld at %lld (", (long long)i, (long long)sample->probes[i].position);
        ats_print_text(sample->probes[i].role);
        printf(")%s", i + 1 < sample->n_probes ? "," : "");
    }
    putchar('\n');
}

static void print_checksums(int64_t tensors, int64_t with)
{
    if (with == tensors)
        printf("  checksums: over all %lld tensors\n", (long long)tensors);
    else
        printf("  checksums: over %lld of %lld tensors; in the others a damaged byte passes for "
               "another number\n",
               (long long)with, (long long)tensors);
}

static void print_line(const char *name, const char *text)
{
    printf("  %s ", name);
    ats_print_text(text);
    putchar('\n');
}

static ats_code print_capture(const ats_capture *capture, ats_err *err)
{
    int64_t tensors, with;
    const ats_code rc = ats_capture_checksums(capture, &tensors, &with, err);
    if (rc != ATS_OK) return rc;
    printf("capture %s\n  model ", capture->path);
    ats_print_text(capture->model_id);
    printf(", checkpoint ");
    ats_print_text(capture->checkpoint);
    printf("\n  weights ");
    ats_print_text(capture->weights_hash);
    printf(", made by ");
    ats_print_text(capture->producer);
    printf("\n  hash %s\n", capture->hash);
    print_checksums(tensors, with);
    for (int64_t l = 0; l < capture->n_layers; l++) print_layer(&capture->layers[l]);
    for (int64_t r = 0; r < capture->n_readouts; r++)
        print_line("readout", capture->readout_names[r]);
    for (int64_t s = 0; s < capture->n_samples; s++) print_sample(&capture->samples[s]);
    return ATS_OK;
}

static json_t *json_layers(const ats_capture *capture)
{
    json_t *list = json_array();
    for (int64_t l = 0; l < capture->n_layers; l++) {
        const ats_layer *x = &capture->layers[l];
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:b, s:s, s:b, s:b}",
                            "layer", (json_int_t)x->index, "n_q_heads", (json_int_t)x->n_q_heads,
                            "n_kv_heads", (json_int_t)x->n_kv_heads, "d_qk", (json_int_t)x->d_qk,
                            "d_v", (json_int_t)x->d_v, "scale", x->contract.scale, "softcap",
                            x->contract.softcap, "window", (json_int_t)x->contract.window, "chunk",
                            (json_int_t)x->contract.chunk, "causal", x->contract.causal,
                            "positions", positions_name(x->positions), "sink", x->sink != NULL,
                            "w_o", x->w_o != NULL));
    }
    return list;
}

static json_t *json_sample(const ats_sample *sample)
{
    json_t *spans = json_array(), *probes = json_array();
    for (int64_t i = 0; i < sample->n_spans; i++)
        json_array_append_new(spans, json_pack("{s:s, s:s, s:I, s:I}", "name",
                                               sample->spans[i].name, "role", sample->spans[i].role,
                                               "start", (json_int_t)sample->spans[i].start, "stop",
                                               (json_int_t)sample->spans[i].stop));
    for (int64_t i = 0; i < sample->n_probes; i++)
        json_array_append_new(probes, json_pack("{s:I, s:I, s:s}", "index",
                                                (json_int_t)sample->probes[i].index, "position",
                                                (json_int_t)sample->probes[i].position, "role",
                                                sample->probes[i].role));
    return json_pack("{s:s, s:I, s:s?, s:o, s:o}", "id", sample->id, "keys",
                     (json_int_t)sample->n_keys, "variant_of", sample->variant_of, "spans", spans,
                     "probes", probes);
}

static ats_code json_capture(const ats_capture *capture, ats_err *err)
{
    json_t *samples = json_array(), *readouts = json_array();
    for (int64_t s = 0; s < capture->n_samples; s++)
        json_array_append_new(samples, json_sample(&capture->samples[s]));
    for (int64_t r = 0; r < capture->n_readouts; r++)
        json_array_append_new(readouts, json_string(capture->readout_names[r]));
    int64_t tensors, with;
    const ats_code rc = ats_capture_checksums(capture, &tensors, &with, err);
    if (rc != ATS_OK) return rc;
    return ats_json_print(
        json_pack("{s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "path", capture->path,
                  "tensors", (json_int_t)tensors, "tensors_with_checksum", (json_int_t)with,
                  "model_id", capture->model_id, "checkpoint", capture->checkpoint, "weights_hash",
                  capture->weights_hash, "hash", capture->hash, "layers", json_layers(capture),
                  "samples", samples, "readouts", readouts),
        err);
}

/* One dataset as a line: name, type, extents. */
static void print_dataset(const ats_h5_dataset *dataset)
{
    printf("  %-40s %-8s [", dataset->name, ats_h5_type_name(dataset->type));
    for (int i = 0; i < dataset->rank; i++)
        printf("%s%lld", i > 0 ? ", " : "", (long long)dataset->extent[i]);
    printf("]\n");
}

/* Datasets under a group, in depth, by name. */
static ats_code print_tree(const ats_h5_file *file, const char *group, ats_arena *arena,
                           ats_err *err)
{
    const char *const *names = NULL;
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(ats_h5_children(file, group, arena, &names, &n, err));
    for (int64_t i = 0; i < n; i++) {
        const char *path = NULL;
        ats_h5_dataset dataset = {0};
        ats_err ignored = {.code = ATS_OK};
        ATS_TRY(ats_arena_printf(arena, &path, err, "%s%s%s", group,
                                 group[strlen(group) - 1] == '/' ? "" : "/", names[i]));
        if (ats_h5_dataset_open(file, path, &dataset, &ignored) == ATS_OK) {
            print_dataset(&dataset);
            ats_h5_dataset_close(&dataset);
        } else {
            printf("  %s/\n", path);
            ATS_TRY(print_tree(file, path, arena, err));
        }
    }
out:
    return rc;
}

static int64_t row_length(const ats_h5_dataset *dataset)
{
    return dataset->rank > 0 ? dataset->extent[dataset->rank - 1] : 1;
}

static ats_code print_texts(const ats_h5_dataset *dataset, ats_arena *arena, ats_err *err)
{
    const char *const *texts = NULL;
    ats_code rc = ats_h5_read_texts(dataset, arena, &texts, err);
    for (int64_t i = 0; rc == ATS_OK && i < dataset->count; i++) {
        ats_print_text(texts[i]);
        putchar('\n');
    }
    return rc;
}

static ats_code print_numbers(const ats_h5_dataset *dataset, ats_arena *arena, ats_err *err)
{
    const bool integer = ats_h5_type_is_integer(dataset->type);
    double *reals = NULL;
    int64_t *integers = NULL;
    ats_code rc;
    ATS_TRY(ats_h5_expect_stored(dataset, true, err));
    if (integer) {
        ATS_TRY(ATS_NEW(arena, dataset->count, &integers, err));
        ATS_TRY(ats_h5_read(dataset, NULL, NULL, ATS_H5_I64, integers, err));
    } else {
        ATS_TRY(ATS_NEW(arena, dataset->count, &reals, err));
        ATS_TRY(ats_h5_read(dataset, NULL, NULL, ATS_H5_F64, reals, err));
    }
    const int64_t row = row_length(dataset);
    for (int64_t i = 0; i < dataset->count; i++) {
        const char *end = row > 0 && (i + 1) % row == 0 ? "\n" : " ";
        if (integer)
            printf("%lld%s", (long long)integers[i], end);
        else
            printf("%.9g%s", reals[i], end);
    }
out:
    return rc;
}

static ats_code print_values(const ats_h5_file *file, const char *name, ats_arena *arena,
                             ats_err *err)
{
    ats_h5_dataset dataset = {0};
    const char *path = name;
    ats_code rc;
    if (name[0] != '/') ATS_TRY(ats_arena_printf(arena, &path, err, "/%s", name));
    ATS_TRY(ats_h5_dataset_open(file, path, &dataset, err));
    if (dataset.type == ATS_H5_TEXT)
        ATS_TRY(print_texts(&dataset, arena, err));
    else if (dataset.type == ATS_H5_BOOL || dataset.type == ATS_H5_OTHER)
        ATS_TRY(ats_h5_fail(err, ATS_E_UNSUPPORTED, file, path,
                            "values of type %s cannot be printed; use h5dump",
                            ats_h5_type_name(dataset.type)));
    else
        ATS_TRY(print_numbers(&dataset, arena, err));
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

static ats_code print_file(const ats_h5_file *file, ats_arena *arena, ats_err *err)
{
    static const char *const shown[] = {"suite_name", "suite_hash",   "captures", "model_id",
                                        "backend",    "tool_version", "detail",   "target"};
    const char *text = NULL;
    printf("file %s\n", file->path);
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        if (ats_h5_has_attr(file, "/", shown[i]) &&
            ats_h5_get_text(file, "/", shown[i], arena, &text, err) == ATS_OK)
            printf("  %s: %s\n", shown[i], text);
    ats_code rc = ats_ending_print(file->path, arena, err);
    return rc == ATS_OK ? print_tree(file, "/", arena, err) : rc;
}

static bool is_capture(const ats_h5_file *file, ats_arena *arena)
{
    const char *format = NULL;
    ats_err ignored = {.code = ATS_OK};
    return ats_h5_get_text(file, "/", "format", arena, &format, &ignored) == ATS_OK &&
           strcmp(format, "attnstress-capture") == 0;
}

static ats_code run_inspect(const ats_args *args, ats_err *err)
{
    const char *path = args->operands[0], *values = ats_args_value(args, "values");
    ats_h5_file file = {0};
    ats_capture *capture = NULL;
    ats_arena arena;
    ats_code rc;
    ats_arena_init(&arena, false);
    ATS_TRY(ats_h5_open(path, &file, err));
    if (values != NULL) {
        ATS_TRY(print_values(&file, values, &arena, err));
    } else if (is_capture(&file, &arena)) {
        ats_h5_close(&file);
        file = (ats_h5_file){0};
        ATS_TRY(ats_capture_open(path, &capture, err));
        if (ats_args_flag(args, "json"))
            ATS_TRY(json_capture(capture, err));
        else
            ATS_TRY(print_capture(capture, err));
    } else if (ats_args_flag(args, "json")) {
        ATS_TRY(ats_fail(err, ATS_E_USAGE,
                         "%s is not a capture, and --json shows captures; leave --json away",
                         path));
    } else {
        ATS_TRY(print_file(&file, &arena, err));
    }
out:
    ats_capture_close(capture);
    ats_h5_close(&file);
    ats_arena_fini(&arena);
    return rc;
}

const ats_command ats_cmd_inspect = {
    .name = "inspect",
    .operands = "FILE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "what a capture or result holds, and values of a dataset",
    .examples = "attnstress inspect capture.h5\n"
                "attnstress inspect result.h5 --values log_mass_shift",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_inspect,
};
