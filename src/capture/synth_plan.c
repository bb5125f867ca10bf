#include "capture/synth_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SINK_ROWS = 4, FACT_ROWS = 8, MAX_DISTRACTORS = 48, TEXT_LIMIT = 65536, D_MODEL = 64 };

static const char *const fact_words[][FACT_ROWS] = {
    {"The", " red", " door", " opens", " with", " code", " 4711", "."},
    {"The", " red", " door", " opened", " with", " code", " 1234", "."},
    {"The", " red", " door", " now", " opens", " with", " 8205", "."},
    {"Which", " code", " opens", " the", " red", " door", " today", "?"},
    {"<bos>", " Notes", " of", ":", " the", " porter", " of", ":"},
    {"The", " blue", " door", " opens", " with", " code", " 9", "."},
};
static const char *const filler_words[] = {" and",  " then",   " the",  " rain",  " fell",  " on",
                                           " a",    " garden", " wall", " near",  " their", " old",
                                           " boat", " while",  " tea",  " cooled"};

float ats_synth_normal(ats_rng *rng)
{
    const uint32_t w = ats_rng_u32(rng);
    const int sum = (int)(w & 255) + (int)(w >> 8 & 255) + (int)(w >> 16 & 255) + (int)(w >> 24);
    return (float)(sum - 510) * (1.0F / 147.80054F); /* variance of a byte: (256^2 - 1) / 12 */
}

static ats_code refuse(ats_err *err, const char *what, double found, const char *allowed)
{
    return ats_fail(err, ATS_E_USAGE, "synth: %s is %g; it must be %s", what, found, allowed);
}

static ats_code check_counts(const ats_synth_options *o, ats_err *err)
{
    const struct {
        const char *name;
        int64_t value, min, max;
    } counts[] = {
        {"the number of samples", o->samples, 1, 100000},
        {"the number of layers", o->layers, 1, 1000},
        {"the number of query heads", o->n_q_heads, 1, 1024},
        {"the number of key heads", o->n_kv_heads, 1, 1024},
        {"the number of keys", o->n_keys, 1, (int64_t)1 << 31},
        {"the number of probes", o->n_probes, 1, 4096},
        {"d_qk", o->d_qk, 1, 4096},
        {"d_v", o->d_v, 1, 4096},
        {"the number of distractors", o->distractors, 0, MAX_DISTRACTORS},
        {"the window", o->window, 0, INT64_MAX / 4},
        {"the chunk", o->chunk, 0, INT64_MAX / 4},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value < counts[i].min || counts[i].value > counts[i].max)
            return ats_fail(err, ATS_E_USAGE, "synth: %s is %lld; it must be %lld to %lld",
                            counts[i].name, (long long)counts[i].value, (long long)counts[i].min,
                            (long long)counts[i].max);
    if (o->n_q_heads % o->n_kv_heads != 0)
        return ats_fail(
            err, ATS_E_USAGE,
            "synth: %lld query heads cannot share %lld key heads evenly; make the first "
            "a multiple of the second",
            (long long)o->n_q_heads, (long long)o->n_kv_heads);
    return ATS_OK;
}

static ats_code check_options(const ats_synth_options *o, ats_err *err)
{
    ats_code rc = check_counts(o, err);
    if (rc != ATS_OK) return rc;
    if (!(o->gold_mass > 0 && o->gold_mass < 1))
        return refuse(err, "the gold mass", o->gold_mass, "between 0 and 1");
    if (!(o->distractor_mass > 0 || o->distractors == 0))
        return refuse(err, "the distractor mass", o->distractor_mass, "above 0");
    const double named = o->gold_mass + (double)o->distractors * o->distractor_mass;
    if (!(named < 0.99))
        return refuse(err, "the mass of gold and all distractors together", named, "below 0.99");
    if (!(o->softcap >= 0) || isinf(o->softcap))
        return refuse(err, "the soft cap", o->softcap, "0 (none) or a positive number");
    return ATS_OK;
}

static ats_code set_widths(ats_synth_plan *plan, ats_err *err)
{
    const ats_synth_options *o = &plan->options;
    plan->n_classes = ATS_SYNTH_DISTRACTOR + o->distractors;
    plan->parts = o->dtype == ATS_F32 || 2 * plan->n_classes + 2 > o->d_qk ? 1 : 2;
    plan->content = o->d_qk - plan->parts * plan->n_classes;
    if (plan->content < 2)
        return ats_fail(err, ATS_E_USAGE,
                        "synth: d_qk is %lld, too narrow to plant %lld spans; it must be at least "
                        "%lld with %lld distractors",
                        (long long)o->d_qk, (long long)plan->n_classes,
                        (long long)plan->n_classes + 2, (long long)o->distractors);
    return ATS_OK;
}

/* What gold and the distractors leave is shared: sink 20 %, current and question 10 %, stale 5 %.
 */
static ats_code make_shares(ats_arena *arena, ats_synth_plan *plan, ats_err *err)
{
    const ats_synth_options *o = &plan->options;
    const double rest = 1 - o->gold_mass - (double)o->distractors * o->distractor_mass;
    double *share = NULL;
    ats_code rc = ATS_NEW(arena, plan->n_classes, &share, err);
    if (rc != ATS_OK) return rc;
    share[ATS_SYNTH_GOLD] = o->gold_mass;
    share[ATS_SYNTH_STALE] = 0.05 * rest;
    share[ATS_SYNTH_CURRENT] = 0.1 * rest;
    share[ATS_SYNTH_QUESTION] = 0.1 * rest;
    share[ATS_SYNTH_SINK] = 0.2 * rest;
    for (int64_t i = ATS_SYNTH_DISTRACTOR; i < plan->n_classes; i++) share[i] = o->distractor_mass;
    plan->share = share;
    return ATS_OK;
}

static float *random_rows(ats_rng rng, float *dst, int64_t count, double factor)
{
    for (int64_t i = 0; i < count; i++) dst[i] = (float)(factor * (double)ats_synth_normal(&rng));
    return dst;
}

static ats_code make_layer(ats_arena *arena, const ats_synth_plan *plan, int64_t index,
                           ats_layer *out, ats_err *err)
{
    const ats_synth_options *o = &plan->options;
    const ats_contract contract = {.scale = 1 / sqrt((double)o->d_qk),
                                   .softcap = o->softcap,
                                   .temperature = 1,
                                   .window = o->window,
                                   .chunk = o->chunk,
                                   .causal = true};
    ats_layer layer = {.index = index,
                       .n_q_heads = o->n_q_heads,
                       .n_kv_heads = o->n_kv_heads,
                       .d_qk = o->d_qk,
                       .d_v = o->d_v,
                       .contract = contract,
                       .positions = o->rope ? ATS_POSITIONS_ROPE : ATS_POSITIONS_NONE,
                       .max_position = o->n_keys < 1 << 18 ? 1 << 20 : 4 * o->n_keys};
    ats_code rc = ATS_OK;
    if (o->rope) {
        const int64_t pairs = plan->content / 2;
        double *frequency = NULL;
        ATS_TRY(ATS_NEW(arena, pairs, &frequency, err));
        for (int64_t i = 0; i < pairs; i++) frequency[i] = pow(10000, -(double)i / (double)pairs);
        layer.contract.rope =
            (ats_rope){.layout = o->layout, .pairs = pairs, .inv_freq = frequency};
    }
    if (o->sink) {
        float *sink = NULL;
        ATS_TRY(ATS_NEW(arena, o->n_q_heads, &sink, err));
        for (int64_t h = 0; h < o->n_q_heads; h++)
            sink[h] = (float)(0.5 * log((double)o->n_keys) + 0.25 * (double)(h % 4));
        layer.sink = sink;
    }
    if (o->w_o) {
        const int64_t count = o->n_q_heads * o->d_v * D_MODEL;
        float *w_o = NULL;
        ATS_TRY(ATS_NEW(arena, count, &w_o, err));
        layer.w_o = random_rows(ats_rng_stream(o->seed, "", "synth", index, 0, "w_o"), w_o, count,
                                1 / sqrt((double)(o->n_q_heads * o->d_v)));
        layer.d_model = D_MODEL;
    }
    *out = layer;
out:
    return rc;
}

/* First row that every probe may see, and the check that the spans fit behind it. */
static ats_code span_room(const ats_synth_plan *plan, int64_t question, int64_t *low,
                          int64_t *width, ats_err *err)
{
    const ats_synth_options *o = &plan->options;
    const int64_t n = o->n_keys, slots = o->distractors + 3;
    int64_t first = SINK_ROWS;
    if (o->window > 0 && n - o->window > first) first = n - o->window;
    if (o->chunk > 0 && (n - 1) / o->chunk * o->chunk > first)
        first = (n - 1) / o->chunk * o->chunk;
    *low = first;
    *width = question > first ? (question - first) / slots : 0;
    if (*width >= 2) return ATS_OK;
    return ats_fail(err, ATS_E_USAGE,
                    "synth: %lld facts of at least 2 rows do not fit between row %lld (the first "
                    "that every probe sees) and the question at row %lld; use more keys, a wider "
                    "window or chunk, or fewer probes or distractors",
                    (long long)slots, (long long)first, (long long)question);
}

static ats_code make_spans(ats_arena *arena, const ats_synth_plan *plan, ats_sample *sample,
                           ats_err *err)
{
    const ats_synth_options *o = &plan->options;
    const int64_t n = o->n_keys, slots = o->distractors + 3;
    int64_t low = 0, width = 0, *slot = NULL;
    ats_span *span = NULL;
    ats_rng rng = ats_rng_stream(o->seed, sample->id, "synth", 0, 0, "places");
    const int64_t question = n - (o->n_probes > FACT_ROWS ? o->n_probes : FACT_ROWS);
    ats_code rc = span_room(plan, question, &low, &width, err);
    if (rc != ATS_OK) goto out;
    ATS_TRY(ATS_NEW(arena, plan->n_classes, &span, err));
    ATS_TRY(ATS_NEW(arena, slots, &slot, err));
    const int64_t rows = width / 2 < FACT_ROWS ? width / 2 : FACT_ROWS;
    for (int64_t i = 0; i < slots; i++) slot[i] = i;
    ats_rng_choose(&rng, slot, slots, slots);
    if (slot[ATS_SYNTH_STALE] > slot[ATS_SYNTH_CURRENT]) {
        const int64_t later = slot[ATS_SYNTH_STALE];
        slot[ATS_SYNTH_STALE] = slot[ATS_SYNTH_CURRENT];
        slot[ATS_SYNTH_CURRENT] = later;
    }
    for (int64_t i = 0, next = 0; i < plan->n_classes; i++) {
        static const char *const names[] = {"gold", "stale", "current", "question", "sink"};
        if (i < ATS_SYNTH_DISTRACTOR)
            span[i].name = span[i].role = names[i];
        else {
            ATS_TRY(ats_arena_printf(arena, &span[i].name, err, "distractor%lld",
                                     (long long)(i - ATS_SYNTH_DISTRACTOR)));
            span[i].role = "distractor";
        }
        if (i == ATS_SYNTH_QUESTION || i == ATS_SYNTH_SINK) {
            span[i].start = i == ATS_SYNTH_SINK ? 0 : question;
            span[i].stop = i == ATS_SYNTH_SINK ? SINK_ROWS : n;
            continue;
        }
        span[i].start = low + slot[next++] * width + ats_rng_below(&rng, width - rows + 1);
        span[i].stop = span[i].start + rows;
    }
    sample->spans = span;
    sample->n_spans = plan->n_classes;
out:
    return rc;
}

static int32_t token_of(const char *word)
{
    uint32_t hash = 2166136261U; /* FNV-1a */
    for (; *word != '\0'; word++) hash = (hash ^ (uint8_t)*word) * 16777619U;
    return (int32_t)(hash & 0x7fff);
}

static ats_code make_text(ats_arena *arena, const ats_synth_plan *plan, ats_sample *sample,
                          ats_err *err)
{
    const int64_t n = sample->n_keys;
    const char **text = NULL;
    int32_t *token = NULL;
    int64_t *position = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n, &text, err));
    ATS_TRY(ATS_NEW(arena, n, &token, err));
    ATS_TRY(ATS_NEW(arena, n, &position, err));
    ats_rng rng = ats_rng_stream(plan->options.seed, sample->id, "synth", 0, 0, "words");
    for (int64_t i = 0; i < n; i++)
        text[i] = filler_words[ats_rng_u32(&rng) % (sizeof filler_words / sizeof *filler_words)];
    for (int64_t s = 0; s < sample->n_spans; s++) {
        const int64_t start = sample->spans[s].start;
        const int64_t fact = s < ATS_SYNTH_DISTRACTOR ? s : ATS_SYNTH_DISTRACTOR;
        for (int64_t i = start; i < sample->spans[s].stop; i++)
            text[i] = fact_words[fact][(i - start) % FACT_ROWS];
    }
    for (int64_t i = 0; i < n; i++) {
        token[i] = token_of(text[i]);
        position[i] = i;
    }
    sample->tokens = token;
    sample->position = position;
    sample->token_text = n <= TEXT_LIMIT ? text : NULL;
out:
    return rc;
}

static ats_code make_sample(ats_arena *arena, const ats_synth_plan *plan, int64_t index,
                            ats_sample *sample, ats_err *err)
{
    const ats_synth_options *o = &plan->options;
    ats_probe *probe = NULL;
    *sample = (ats_sample){.n_keys = o->n_keys, .n_probes = o->n_probes};
    ats_code rc = ats_arena_printf(arena, &sample->id, err, "synth-%03lld", (long long)index);
    if (rc != ATS_OK) goto out;
    sample->cluster = sample->id;
    ATS_TRY(make_spans(arena, plan, sample, err));
    ATS_TRY(make_text(arena, plan, sample, err));
    ATS_TRY(ATS_NEW(arena, o->n_probes, &probe, err));
    for (int64_t p = 0; p < o->n_probes; p++) {
        const int64_t at = o->n_keys - o->n_probes + p;
        probe[p] = (ats_probe){.index = at, .position = at, .role = "question"};
    }
    sample->probes = probe;
    if (o->chunk > 0 && (o->n_keys - 1) / o->chunk != (o->n_keys - o->n_probes) / o->chunk)
        return ats_fail(err, ATS_E_USAGE,
                        "synth: the last %lld rows are probes and lie in two chunks of %lld; use "
                        "another number of keys or fewer probes",
                        (long long)o->n_probes, (long long)o->chunk);
out:
    return rc;
}

static ats_code make_readouts(ats_arena *arena, const ats_synth_plan *plan, ats_capture *meta,
                              ats_err *err)
{
    static const char *const names[] = {"gold - stale", "gold - distractor"};
    float *direction = NULL;
    ats_code rc = ATS_NEW(arena, 2 * D_MODEL, &direction, err);
    if (rc != ATS_OK) return rc;
    ats_rng rng = ats_rng_stream(plan->options.seed, "", "synth", 0, 0, "readouts");
    meta->readouts = random_rows(rng, direction, 2 * D_MODEL, 1);
    meta->n_readouts = 2;
    meta->readout_dim = D_MODEL;
    meta->readout_names = names;
    return ATS_OK;
}

ats_code ats_synth_plan_make(ats_arena *arena, const ats_synth_options *options,
                             ats_synth_plan *out, ats_err *err)
{
    ats_synth_plan plan = {.options = *options};
    ats_layer *layers = NULL;
    ats_sample *samples = NULL;
    ats_capture *meta = &plan.meta;
    ats_code rc = check_options(options, err);
    if (rc != ATS_OK) goto out;
    ATS_TRY(set_widths(&plan, err));
    ATS_TRY(make_shares(arena, &plan, err));
    ATS_TRY(ATS_NEW(arena, options->layers, &layers, err));
    ATS_TRY(ATS_NEW(arena, options->samples, &samples, err));
    for (int64_t i = 0; i < options->layers; i++)
        ATS_TRY(make_layer(arena, &plan, i, &layers[i], err));
    for (int64_t i = 0; i < options->samples; i++)
        ATS_TRY(make_sample(arena, &plan, i, &samples[i], err));
    ATS_TRY(ats_arena_printf(arena, &meta->weights_hash, err, "%032llx",
                             (unsigned long long)options->seed));
    ATS_TRY(ats_arena_printf(arena, &meta->checkpoint, err, "planted truth, seed %llu",
                             (unsigned long long)options->seed));
    meta->model_id = "synthetic";
    meta->tokenizer_hash = "words";
    meta->created = "1970-01-01"; /* fixed: equal options give equal bytes */
    meta->producer = "attnstress synth";
    meta->layers = layers;
    meta->n_layers = options->layers;
    meta->samples = samples;
    meta->n_samples = options->samples;
    if (options->w_o) ATS_TRY(make_readouts(arena, &plan, meta, err));
    *out = plan;
out:
    return rc;
}
