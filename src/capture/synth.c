#include "capture/synth.h"

#include "base/log.h"
#include "capture/synth_plan.h"
#include "capture/writer.h"

ats_synth_options ats_synth_defaults(void)
{
    return (ats_synth_options){.seed = 1,
                               .samples = 2,
                               .layers = 2,
                               .n_q_heads = 4,
                               .n_kv_heads = 2,
                               .n_keys = 1024,
                               .n_probes = 4,
                               .d_qk = 64,
                               .d_v = 64,
                               .dtype = ATS_BF16,
                               .gold_mass = 0.4,
                               .distractor_mass = 0.03,
                               .distractors = 4,
                               .layout = ATS_ROPE_HALF};
}

static ats_code new_rows(ats_arena *arena, const ats_synth_plan *plan, ats_synth_row **out,
                         ats_err *err)
{
    const int64_t count = plan->options.n_q_heads * plan->options.n_probes;
    ats_synth_row *rows = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, count, &rows, err));
    for (int64_t i = 0; i < count; i++)
        ATS_TRY(ATS_NEW(arena, plan->n_classes, &rows[i].mass, err));
    *out = rows;
out:
    return rc;
}

/* One sample; one layer's tensors are in memory at a time. */
static ats_code write_sample(ats_arena *arena, const ats_synth_plan *plan, int64_t sample,
                             ats_synth_row *rows, ats_synth_truth *truth,
                             ats_capture_writer *writer, ats_err *err)
{
    const int64_t n_layers = plan->meta.n_layers;
    const ats_sample *at = &plan->meta.samples[sample];
    ats_code rc;
    ATS_TRY(ats_capture_begin_sample(writer, at, err));
    for (int64_t l = 0; l < n_layers; l++) {
        ats_attention tensors = {0};
        ATS_TRY(ats_synth_tensors(arena, plan, sample, l, &tensors, rows, err));
        ATS_TRY(ats_synth_truth_add(truth, sample, l, rows, err));
        ATS_TRY(ats_capture_add_layer(writer, at, &tensors, err));
        ats_arena_reset(arena);
        ats_progress(sample * n_layers + l + 1, plan->meta.n_samples * n_layers, "layers", "");
    }
out:
    return rc;
}

ats_code ats_synth_write(const ats_synth_options *options, const char *path, const char *truth_path,
                         ats_err *err)
{
    ats_arena small = {0}, large = {0};
    ats_synth_plan plan = {.parts = 0};
    ats_synth_row *rows = NULL;
    ats_synth_truth *truth = NULL;
    ats_capture_writer *writer = NULL;
    ats_code rc;
    ATS_TRY(ats_synth_plan_make(&small, options, &plan, err));
    ATS_TRY(new_rows(&small, &plan, &rows, err));
    ATS_TRY(ats_synth_truth_new(&plan, &truth, err));
    ATS_TRY(ats_capture_create(path, &plan.meta, &writer, err));
    for (int64_t s = 0; s < plan.meta.n_samples; s++)
        ATS_TRY(write_sample(&large, &plan, s, rows, truth, writer, err));
    ats_capture_writer *finished = writer;
    writer = NULL;
    ATS_TRY(ats_capture_finish(finished, err));
    if (truth_path != NULL) ATS_TRY(ats_synth_truth_write(truth, truth_path, err));
out:
    ats_progress(0, 0, "", "");
    if (writer != NULL) ats_capture_abort(writer);
    ats_synth_truth_free(truth);
    ats_arena_fini(&large);
    ats_arena_fini(&small);
    return rc;
}
