#include "capture/synth_plan.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ats_synth_truth {
    const ats_synth_plan *plan;
    json_t *root, *samples;
    json_t *layers; /* of the sample in work, borrowed */
    int64_t sample;
};

static ats_code no_memory(ats_err *err)
{
    return ats_fail(err, ATS_E_MEMORY, "out of memory while collecting the planted truth");
}

ats_code ats_synth_truth_new(const ats_synth_plan *plan, ats_synth_truth **out, ats_err *err)
{
    const ats_synth_options *o = &plan->options;
    ats_synth_truth *truth = calloc(1, sizeof *truth);
    if (truth == NULL) return no_memory(err);
    truth->plan = plan;
    truth->sample = -1;
    truth->root =
        json_pack("{s:s, s:i, s:I, s:{s:f, s:f}, s:s, s:[]}", "format", "attnstress-synth-truth",
                  "format_version", 1, "seed", (json_int_t)o->seed, "asked", "gold", o->gold_mass,
                  "distractor", o->distractors > 0 ? o->distractor_mass : 0.0, "dose",
                  "exact copies of the row's strongest distractor span, inserted in "
                  "overlay, at which gold keeps half of its mass: flip_dose = 1 / mass "
                  "(copies as a real number), flip_copies rounded up",
                  "samples");
    if (truth->root == NULL) {
        free(truth);
        return no_memory(err);
    }
    truth->samples = json_object_get(truth->root, "samples");
    *out = truth;
    return ATS_OK;
}

/* Appends and gives the item's members over to `list`; false when memory is out. */
static bool append(json_t *list, json_t *item)
{
    return item != NULL && json_array_append_new(list, item) == 0;
}

static json_t *masses(const ats_synth_plan *plan, int64_t sample, const ats_synth_row *row)
{
    json_t *all = json_object();
    for (int64_t s = 0; all != NULL && s < plan->n_classes; s++)
        if (json_object_set_new(all, plan->meta.samples[sample].spans[s].name,
                                json_real(row->mass[s])) != 0) {
            json_decref(all);
            all = NULL;
        }
    return all;
}

/* c copies of a span of mass m leave 1 / (1 + c m) of every old mass: half at c = 1 / m. */
static json_t *row_json(const ats_synth_plan *plan, int64_t sample, int64_t probe,
                        const ats_synth_row *row)
{
    json_t *item = json_pack("{s:I, s:f, s:f, s:o}", "probe", (json_int_t)probe, "lse", row->lse,
                             "null_mass", row->null_mass, "mass", masses(plan, sample, row));
    if (item == NULL || plan->n_classes == ATS_SYNTH_DISTRACTOR) return item;
    int64_t strongest = ATS_SYNTH_DISTRACTOR;
    for (int64_t s = strongest; s < plan->n_classes; s++)
        if (row->mass[s] > row->mass[strongest]) strongest = s;
    const double dose = 1 / row->mass[strongest];
    const char *name = plan->meta.samples[sample].spans[strongest].name;
    if (json_object_set_new(item, "strongest_distractor", json_string(name)) == 0 &&
        json_object_set_new(item, "flip_dose", json_real(dose)) == 0 &&
        json_object_set_new(item, "flip_copies", json_integer((json_int_t)ceil(dose))) == 0)
        return item;
    json_decref(item);
    return NULL;
}

static json_t *head_json(const ats_synth_plan *plan, int64_t sample, int64_t head,
                         const ats_synth_row *rows)
{
    json_t *probes = json_array();
    for (int64_t p = 0; probes != NULL && p < plan->options.n_probes; p++)
        if (!append(probes, row_json(plan, sample, p, &rows[head * plan->options.n_probes + p]))) {
            json_decref(probes);
            probes = NULL;
        }
    return json_pack("{s:I, s:o}", "head", (json_int_t)head, "probes", probes);
}

ats_code ats_synth_truth_add(ats_synth_truth *truth, int64_t sample, int64_t layer,
                             const ats_synth_row *rows, ats_err *err)
{
    const ats_synth_plan *plan = truth->plan;
    if (sample != truth->sample) {
        json_t *item = json_pack("{s:s, s:[]}", "id", plan->meta.samples[sample].id, "layers");
        if (!append(truth->samples, item)) return no_memory(err);
        truth->layers = json_object_get(item, "layers");
        truth->sample = sample;
    }
    json_t *item =
        json_pack("{s:I, s:[]}", "layer", (json_int_t)plan->meta.layers[layer].index, "heads");
    if (!append(truth->layers, item)) return no_memory(err);
    json_t *heads = json_object_get(item, "heads");
    for (int64_t h = 0; h < plan->options.n_q_heads; h++)
        if (!append(heads, head_json(plan, sample, h, rows))) return no_memory(err);
    return ATS_OK;
}

ats_code ats_synth_truth_write(const ats_synth_truth *truth, const char *path, ats_err *err)
{
    if (json_dump_file(truth->root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0)
        return ATS_OK;
    return ats_fail(err, ATS_E_IO,
                    "%s: the planted truth could not be written: %s; choose a place that can be "
                    "written and has room",
                    path, strerror(errno));
}

void ats_synth_truth_free(ats_synth_truth *truth)
{
    if (truth == NULL) return;
    json_decref(truth->root);
    free(truth);
}
