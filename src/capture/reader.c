#include "capture/reader.h"

#include <stdlib.h>
#include <string.h>

#include "capture/format.h"
#include "h5/version.h"

typedef struct ats_capture_file capture_file;

static ats_code read_root(capture_file *file, ats_err *err)
{
    ats_capture *capture = &file->capture;
    const struct {
        const char *name, **out;
    } texts[] = {
        {"model_id", &capture->model_id},         {"checkpoint", &capture->checkpoint},
        {"weights_hash", &capture->weights_hash}, {"tokenizer_hash", &capture->tokenizer_hash},
        {"created", &capture->created},           {"producer", &capture->producer}};
    const char *format = NULL;
    int64_t complete = 0;
    ats_code rc;
    if (!ats_h5_has_attr(&file->h5, "/", "format"))
        return ats_h5_fail(err, ATS_E_INPUT, &file->h5, "/",
                           "is not a capture: the attribute format = \"%s\" is missing",
                           ATS_CAPTURE_FORMAT);
    ATS_TRY(ats_capture_text(file, "/", "format", false, &format, err));
    if (strcmp(format, ATS_CAPTURE_FORMAT) != 0) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, "/",
                         "is not a capture: format is \"%s\", should be \"%s\"", format,
                         ATS_CAPTURE_FORMAT);
        goto out;
    }
    ATS_TRY(ats_h5_expect_version(&file->h5, "capture", ATS_CAPTURE_VERSION, err));
    if (ats_h5_has_attr(&file->h5, "/", "complete"))
        ATS_TRY(ats_h5_get_i64(&file->h5, "/", "complete", &complete, err));
    if (complete != 1) {
        rc = ats_h5_fail(err, ATS_E_INPUT, &file->h5, "/",
                         "is not complete (the attribute complete = 1 is written last): its writer "
                         "stopped early or is still at work; write it again");
        goto out;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ATS_TRY(ats_capture_text(file, "/", texts[i].name, i > 0, texts[i].out, err));
out:
    return rc;
}

static int64_t model_width(const ats_capture *capture)
{
    for (int64_t i = 0; i < capture->n_layers; i++)
        if (capture->layers[i].d_model > 0) return capture->layers[i].d_model;
    return -1;
}

static ats_code unique_readouts(capture_file *file, int64_t n, ats_err *err)
{
    const char *const *names = file->capture.readout_names;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return ats_h5_fail(err, ATS_E_INPUT, &file->h5, "/readouts/names",
                                   "names %lld and %lld are both \"%s\"; names are unique",
                                   (long long)j, (long long)i, names[i]);
    return ATS_OK;
}

static ats_code read_readouts(capture_file *file, ats_err *err)
{
    ats_capture *capture = &file->capture;
    ats_h5_dataset dataset = {.id = 0};
    int64_t n = -1;
    ats_code rc = ATS_OK;
    if (!ats_h5_exists(&file->h5, "/readouts")) return ATS_OK;
    ATS_TRY(ats_capture_texts(file, "/readouts", "names", false, true, &n, &capture->readout_names,
                              err));
    if (n == 0) goto out;
    ATS_TRY(unique_readouts(file, n, err));
    ATS_TRY(ats_h5_dataset_open(&file->h5, "/readouts/direction", &dataset, err));
    int64_t extent[2] = {n, model_width(capture)};
    ATS_TRY(ats_h5_expect_shape(&dataset, 2, extent, "[readouts, d_model]", err));
    extent[1] = dataset.extent[1];
    ATS_TRY(ats_capture_floats(file, "/readouts", "direction", false, 2, extent,
                               "[readouts, d_model]", &capture->readouts, err));
    capture->n_readouts = n;
    capture->readout_dim = extent[1];
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

ats_code ats_capture_open(const char *path, ats_capture **out, ats_err *err)
{
    capture_file *file = calloc(1, sizeof *file);
    ats_code rc;
    if (file == NULL) return ats_fail(err, ATS_E_MEMORY, "%s: out of memory", path);
    file->capture.file = file;
    ATS_TRY(ats_arena_strdup(&file->arena, path, &file->capture.path, err));
    ATS_TRY(ats_h5_open(path, &file->h5, err));
    ATS_TRY(read_root(file, err));
    ATS_TRY(ats_capture_read_layers(file, err));
    ATS_TRY(read_readouts(file, err));
    ATS_TRY(ats_capture_read_samples(file, err));
    ATS_TRY(ats_capture_hash(path, file->capture.hash, err));
    *out = &file->capture;
    return ATS_OK;
out:
    ats_capture_close(&file->capture);
    return rc;
}

void ats_capture_close(ats_capture *capture)
{
    if (capture == NULL) return;
    capture_file *file = capture->file;
    ats_h5_close(&file->h5);
    ats_arena_fini(&file->arena);
    free(file);
}
