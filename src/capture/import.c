#include "capture/import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "capture/import_model.h"
#include "capture/writer.h"
#include "h5/file.h"

static ats_code write_samples(ats_import_model *m, ats_capture_writer *writer, ats_err *err)
{
    const int64_t total = m->meta.n_samples * m->meta.n_layers;
    ats_code rc = ATS_OK;
    for (int64_t s = 0; s < m->meta.n_samples; s++) {
        ATS_TRY(ats_capture_begin_sample(writer, &m->meta.samples[s], err));
        for (int64_t l = 0; l < m->meta.n_layers; l++) {
            ats_attention a = {0};
            rc = ats_import_load(m, s, l, &a, err);
            if (rc != ATS_OK) {
                rc = ats_prepend(err, rc, "%s", m->header->path);
                goto out;
            }
            rc = ats_capture_add_layer(writer, &m->meta.samples[s], &a, err);
            ats_attention_fini(&a);
            if (rc != ATS_OK) goto out;
            ats_progress(s * m->meta.n_layers + l + 1, total, "layers", "written");
        }
    }
out:
    ats_progress(0, 0, "layers", "");
    return rc;
}

static ats_code write_capture(ats_import_model *m, const char *path, ats_err *err)
{
    ats_capture_writer *writer = NULL;
    ats_code rc = ats_capture_create(path, &m->meta, &writer, err);
    if (rc != ATS_OK) return rc;
    rc = write_samples(m, writer, err);
    if (rc == ATS_OK) return ats_capture_finish(writer, err);
    ats_capture_abort(writer);
    return rc;
}

/* Whatever a run would refuse is refused now. */
static ats_code prove(const char *path, ats_err *err)
{
    ats_capture *capture = NULL;
    ats_code rc;
    ATS_TRY(ats_capture_open(path, &capture, err));
    for (int64_t s = 0; s < capture->n_samples; s++)
        for (int64_t l = 0; l < capture->n_layers; l++) {
            ats_attention a;
            ATS_TRY(ats_attention_load(capture, s, l, &a, err));
            ats_attention_fini(&a);
        }
out:
    ats_capture_close(capture);
    if (rc != ATS_OK) return ats_prepend(err, rc, "the tensors make a capture that cannot be run");
    return rc;
}

static void note_unused(ats_import_model *m)
{
    for (int64_t i = 0; i < m->set.n_tensors; i++) {
        if (m->set.used[i]) continue;
        if (m->report.n_unused++ == 0) m->report.first_unused = m->set.tensors[i]->name;
    }
}

/* What the writer refuses to replace (a folder, a file that is no HDF5, one in use) is refused
 * before anything is read; the finished file only takes the name. */
static ats_code check_output(const char *output, ats_err *err)
{
    ats_h5_file file = {0};
    const ats_code rc = ats_h5_create(output, &file, err);
    ats_h5_close(&file);
    return rc;
}

/* The capture under a name beside the output's, which it takes when everything is right. */
static ats_code produce(ats_import_model *m, const char *output, ats_err *err)
{
    const char *path = NULL;
    ats_code rc = ats_arena_printf(m->arena, &path, err, "%s.import", output);
    if (rc != ATS_OK) return rc;
    rc = write_capture(m, path, err);
    if (rc == ATS_OK) rc = prove(path, err);
    if (rc == ATS_OK && rename(path, output) != 0)
        rc = ats_fail(err, ATS_E_IO, "%s: cannot be renamed to %s: %s", path, output,
                      strerror(errno));
    if (rc != ATS_OK) unlink(path);
    return rc;
}

static ats_code make_model(ats_import_model *m, ats_err *err)
{
    ats_code rc;
    ATS_TRY(ats_import_make_layers(m, err));
    ATS_TRY(ats_import_make_samples(m, err));
    rc = ats_import_make_readouts(m, err);
out:
    return rc == ATS_OK ? rc : ats_prepend(err, rc, "%s", m->header->path);
}

ats_code ats_import(const ats_import_options *options, ats_arena *arena, ats_import_report *out,
                    ats_err *err)
{
    ats_import_header header;
    ats_import_model m = {.header = &header, .arena = arena, .set = {.arena = arena}};
    ats_code rc;
    ATS_TRY(check_output(options->output, err));
    ATS_TRY(ats_import_header_read(options->header, arena, &header, err));
    ATS_TRY(ats_import_open(&m.set, options->files, options->n_files, err));
    m.meta = (ats_capture){.model_id = header.model_id,
                           .checkpoint = header.checkpoint,
                           .weights_hash = header.weights_hash,
                           .tokenizer_hash = header.tokenizer_hash,
                           .created = header.created,
                           .producer = options->producer};
    ATS_TRY(make_model(&m, err));
    ATS_TRY(produce(&m, options->output, err));
    note_unused(&m);
    m.report.n_layers = m.meta.n_layers;
    m.report.n_samples = m.meta.n_samples;
    m.report.n_tensors = m.set.n_tensors;
    m.report.rounded = m.set.rounded;
    *out = m.report;
out:
    ats_import_close(&m.set);
    return rc;
}
