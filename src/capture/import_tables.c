#include <math.h>

#include "capture/import_header.h"

#define COUNT(fields) ((int64_t)(sizeof(fields) / sizeof *(fields)))
#define MANY 9e18
#define INTS_SCHEMA "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}}"
#define OBJECTS_SCHEMA "{\"type\": \"array\", \"items\": {\"type\": \"object\"}}"

static const char *const layout_words[] = {"half", "interleaved", NULL};
static const char *const type_words[] = {"default", "linear", "llama3", "yarn", "stored", NULL};
static const char *const magnitude_words[] = {"inside", "outside", NULL};
static const char *const mscale_words[] = {"included", "apply", "none", NULL};
static const char *const positions_words[] = {"rope", "alibi", "none", "absolute", NULL};
static const char *const queries_words[] = {"probes", "tokens", NULL};
static const char *const mask_words[] = {"visible", "hidden", NULL};
static const char *const words_words[] = {"bfloat16", "float16", NULL};

#define ROPE(member) offsetof(ats_import_rope, member)
#define NUMBER(key, member, text)                                                                  \
    {                                                                                              \
        .name = key, .type = ATS_FIELD_REAL, .offset = ROPE(member), .doc = text, .max = 1e18      \
    }

static const ats_field rope_fields[] = {
    {.name = "layout",
     .type = ATS_FIELD_WORD,
     .offset = ROPE(layout),
     .doc = "Which elements turn together: i and i + rotary_dim / 2, or 2i and 2i + 1.",
     .required = true,
     .words = layout_words},
    {.name = "rotated",
     .type = ATS_FIELD_BOOL,
     .offset = ROPE(rotated),
     .doc = "The stored q and k are already rotated; false: they are rotated here, in float32.",
     .required = true},
    {.name = "type",
     .type = ATS_FIELD_WORD,
     .offset = ROPE(type),
     .doc = "`rope_type` of the model's configuration; stored: the tensor inv_freq says it.",
     .standard = "default",
     .words = type_words},
    NUMBER("rope_theta", scaling.theta, "Base of the frequencies."),
    {.name = "rotary_dim",
     .type = ATS_FIELD_INT,
     .offset = ROPE(rotary_dim),
     .doc = "Elements of a row that are rotated, the first ones; absent: d_qk.",
     .min = 2,
     .max = 65536},
    {.name = "partial_rotary_factor",
     .type = ATS_FIELD_REAL,
     .offset = ROPE(partial_rotary_factor),
     .doc = "The same as a share of d_qk.",
     .min = 1e-6,
     .max = 1},
    NUMBER("factor", scaling.factor, "linear, llama3, yarn: how far the context is stretched."),
    NUMBER("original_max_position_embeddings", original_max_position_embeddings,
           "llama3, yarn: context of the first training, tokens."),
    NUMBER("max_position_embeddings", max_position_embeddings,
           "Context now, tokens; yarn takes it where the original one is not given."),
    NUMBER("low_freq_factor", scaling.low_freq_factor, "llama3."),
    NUMBER("high_freq_factor", scaling.high_freq_factor, "llama3."),
    {.name = "attention_factor",
     .type = ATS_FIELD_REAL,
     .offset = ROPE(scaling.attention_factor),
     .doc = "yarn: magnitude of q and k, in place of what factor and mscale give.",
     .min = 1e-6,
     .max = 1e6},
    NUMBER("mscale", scaling.mscale, "yarn, DeepSeek."),
    NUMBER("mscale_all_dim", scaling.mscale_all_dim, "yarn, DeepSeek."),
    NUMBER("beta_fast", scaling.beta_fast, "yarn; absent: 32."),
    NUMBER("beta_slow", scaling.beta_slow, "yarn; absent: 1."),
    {.name = "truncate",
     .type = ATS_FIELD_BOOL,
     .offset = ROPE(truncate),
     .doc = "yarn: the ramp between kept and stretched frequencies begins and ends at whole pairs.",
     .standard = "true"},
    {.name = "magnitude",
     .type = ATS_FIELD_WORD,
     .offset = ROPE(magnitude),
     .doc = "Whether the stored q and k hold yarn's magnitude factor (transformers and vLLM: "
            "inside); outside: scale is multiplied by its square. Must be stated where the factor "
            "is not 1.",
     .words = magnitude_words},
    {.name = "softmax_mscale",
     .type = ATS_FIELD_WORD,
     .offset = ROPE(softmax_mscale),
     .doc = "What mscale_all_dim does to the softmax scale: included in scale, apply it here, or "
            "none. Must be stated where mscale_all_dim is.",
     .words = mscale_words},
    {.name = "dynamic",
     .type = ATS_FIELD_BOOL,
     .offset = ROPE(dynamic),
     .doc = "The frequencies depend on the length of the context, so rows cannot be moved.",
     .standard = "false"},
};
static const ats_table rope_table = {"rope",
                                     "Rotary embedding of a layer, in the words of the model's "
                                     "configuration; a key that is not here is refused.",
                                     rope_fields, COUNT(rope_fields)};

#define LAYER(member) offsetof(ats_import_layer, member)
#define SIZE(key, member, text)                                                                    \
    {                                                                                              \
        .name = key, .type = ATS_FIELD_INT, .offset = LAYER(member), .doc = text, .min = 1,        \
        .max = 65536                                                                               \
    }

static const ats_field layer_fields[] = {
    {.name = "layer",
     .type = ATS_FIELD_CUSTOM,
     .offset = LAYER(layers),
     .doc = "The model's layer numbers that this entry describes.",
     .required = true,
     .read = ats_import_read_ints,
     .schema = "{\"anyOf\": [{\"type\": \"integer\"}, " INTS_SCHEMA "]}",
     .form = "a number or a list"},
    {.name = "scale",
     .type = ATS_FIELD_CUSTOM,
     .offset = LAYER(scale),
     .doc = "Multiplies q.k.",
     .required = true,
     .read = ats_import_read_scale,
     .schema = "{\"type\": [\"number\", \"string\"]}",
     .form = "a number, or `1/sqrt(d_qk)`"},
    {.name = "causal",
     .type = ATS_FIELD_BOOL,
     .offset = LAYER(causal),
     .doc = "A query sees positions up to its own only.",
     .required = true},
    SIZE("n_q_heads", n_q_heads, "Query heads; absent: as q says."),
    SIZE("n_kv_heads", n_kv_heads, "Key heads; absent: as k says."),
    SIZE("d_qk", d_qk, "Width of q and k; absent: as q says."),
    SIZE("d_v", d_v, "Width of v; absent: as v says."),
    {.name = "softcap",
     .type = ATS_FIELD_REAL,
     .offset = LAYER(softcap),
     .doc = "Soft cap of the logits; 0: none.",
     .standard = "0",
     .max = 1e18},
    {.name = "window",
     .type = ATS_FIELD_INT,
     .offset = LAYER(window),
     .doc = "Keys of the sliding window, the query's own counted; 0: none.",
     .standard = "0",
     .max = MANY},
    {.name = "chunk",
     .type = ATS_FIELD_INT,
     .offset = LAYER(chunk),
     .doc = "Keys of an attention chunk; 0: none.",
     .standard = "0",
     .max = MANY},
    {.name = "positions",
     .type = ATS_FIELD_WORD,
     .offset = LAYER(positions),
     .doc = "How the layer knows positions; rope where there is a section rope.",
     .words = positions_words},
    {.name = "max_position",
     .type = ATS_FIELD_INT,
     .offset = LAYER(max_position),
     .doc = "Largest position the model was made for; 0: unknown.",
     .standard = "0",
     .max = MANY},
    {.name = "rope",
     .type = ATS_FIELD_SECTION,
     .offset = LAYER(rope),
     .doc = "Rotary embedding.",
     .table = &rope_table},
};
const ats_table ats_import_layer_table = {"an entry of layers",
                                          "One entry describes one or more layers.", layer_fields,
                                          COUNT(layer_fields)};

static const ats_field span_fields[] = {
    {.name = "name",
     .type = ATS_FIELD_TEXT,
     .offset = offsetof(ats_span, name),
     .doc = "Unique in the sample.",
     .required = true},
    {.name = "role",
     .type = ATS_FIELD_TEXT,
     .offset = offsetof(ats_span, role),
     .doc = "gold, stale, current, distractor, duplicate, question, sink, filler or a word of your "
            "own; absent: the name."},
    {.name = "start",
     .type = ATS_FIELD_INT,
     .offset = offsetof(ats_span, start),
     .doc = "First key index.",
     .required = true,
     .max = MANY},
    {.name = "stop",
     .type = ATS_FIELD_INT,
     .offset = offsetof(ats_span, stop),
     .doc = "Key index after the last.",
     .required = true,
     .max = MANY},
};
const ats_table ats_import_span_table = {"a span", "A named run of keys.", span_fields,
                                         COUNT(span_fields)};

static const ats_field probe_fields[] = {
    {.name = "index",
     .type = ATS_FIELD_INT,
     .offset = offsetof(ats_probe, index),
     .doc = "Key index of the probe's own token; -1: it is not among the keys.",
     .required = true,
     .min = -1,
     .max = MANY},
    {.name = "position",
     .type = ATS_FIELD_INT,
     .offset = offsetof(ats_probe, position),
     .doc = "Position of the query, tokens; absent: that of its own token."},
    {.name = "role",
     .type = ATS_FIELD_TEXT,
     .offset = offsetof(ats_probe, role),
     .doc = "A word that suites select by.",
     .standard = "question"},
};
const ats_table ats_import_probe_table = {"a probe", "A query row.", probe_fields,
                                          COUNT(probe_fields)};

#define SAMPLE(member) offsetof(ats_import_sample, member)
#define INTS(key, text)                                                                            \
    {                                                                                              \
        .name = #key, .type = ATS_FIELD_CUSTOM, .offset = SAMPLE(key), .doc = text,                \
        .read = ats_import_read_ints, .schema = INTS_SCHEMA,                                       \
        .form = "a list of whole numbers, or the tensor of that name"                              \
    }

static const ats_field sample_fields[] = {
    {.name = "id",
     .type = ATS_FIELD_TEXT,
     .offset = SAMPLE(id),
     .doc = "Unique in the capture.",
     .required = true},
    {.name = "probes",
     .type = ATS_FIELD_CUSTOM,
     .offset = SAMPLE(n_probes),
     .doc = "Query rows, in the order of q where q holds probes only.",
     .required = true,
     .read = ats_import_read_probes,
     .schema = OBJECTS_SCHEMA,
     .form = "a list of probes"},
    {.name = "spans",
     .type = ATS_FIELD_CUSTOM,
     .offset = SAMPLE(n_spans),
     .doc = "Named runs of keys.",
     .read = ats_import_read_spans,
     .schema = OBJECTS_SCHEMA,
     .form = "a list of spans"},
    {.name = "cluster",
     .type = ATS_FIELD_TEXT,
     .offset = SAMPLE(cluster),
     .doc = "The document that the sample comes from; absent: the id."},
    {.name = "variant_of",
     .type = ATS_FIELD_TEXT,
     .offset = SAMPLE(variant_of),
     .doc = "Id of the sample whose text was really edited; needs base_index."},
    {.name = "first_position",
     .type = ATS_FIELD_INT,
     .offset = SAMPLE(first_position),
     .doc = "Position of key 0 where `position` is absent; each further key is one later.",
     .standard = "0"},
    INTS(position, "Position of each key, tokens."),
    INTS(tokens, "Token id of each key; absent everywhere: -1."),
    INTS(segment, "Packed segment of each key; queries see their own segment only."),
    INTS(base_index, "Index of each key in the sample named by variant_of; -1: inserted."),
    {.name = "token_text",
     .type = ATS_FIELD_TEXTS,
     .offset = SAMPLE(token_text),
     .doc = "Text of each key, for printing."},
};
const ats_table ats_import_sample_table = {"a sample", "One captured context.", sample_fields,
                                           COUNT(sample_fields)};

#define NAME(key, text, pattern)                                                                   \
    {                                                                                              \
        .name = #key, .type = ATS_FIELD_TEXT, .offset = offsetof(ats_import_names, key),           \
        .doc = text, .standard = "\"" pattern "\""                                                 \
    }

static const ats_field names_fields[] = {
    NAME(q, "Queries.", "layers.{layer}.q"),
    NAME(k, "Keys.", "layers.{layer}.k"),
    NAME(v, "Values.", "layers.{layer}.v"),
    NAME(keep, "Mask [query, key] of booleans or bytes; `mask` says its meaning.",
         "layers.{layer}.keep"),
    NAME(bias, "Additive mask [query, key], also with a head axis in front.",
         "layers.{layer}.bias"),
    NAME(out, "The model's own output, axes as q.", "layers.{layer}.out"),
    NAME(lse, "The model's own log-sum-exp (nats), axes as q without dim.", "layers.{layer}.lse"),
    NAME(sink, "Sink logit [query head].", "layers.{layer}.sink"),
    NAME(alibi_slope, "ALiBi slope [query head].", "layers.{layer}.alibi_slope"),
    NAME(w_o, "Output projection [query head, d_v, d_model].", "layers.{layer}.w_o"),
    NAME(inv_freq, "Inverse frequencies [rotary_dim / 2], for rope type stored.",
         "layers.{layer}.inv_freq"),
    NAME(tokens, "Token ids [key].", "tokens"),
    NAME(position, "Positions [key].", "position"),
    NAME(segment, "Segments [key].", "segment"),
    NAME(base_index, "Indices in the base sample [key].", "base_index"),
    NAME(readouts, "Readout directions [name, d_model].", "readouts"),
};
static const ats_table names_table = {
    "names",
    "Names of the tensors in the files. {layer} stands for the layer's number, {sample} for the "
    "sample's id; with more than one sample every name of a sample's tensor needs {sample}. q, k "
    "and v must be there, the others are taken where the files have them.",
    names_fields, COUNT(names_fields)};

#define ROOT(member) offsetof(ats_import_header, member)
static const ats_field root_fields[] = {
    {.name = "version",
     .type = ATS_FIELD_INT,
     .offset = ROOT(version),
     .doc = "Version of this format.",
     .required = true,
     .min = 1,
     .max = 1},
    {.name = "model_id",
     .type = ATS_FIELD_TEXT,
     .offset = ROOT(model_id),
     .doc = "The model's name.",
     .required = true},
    {.name = "layout",
     .type = ATS_FIELD_CUSTOM,
     .offset = 0,
     .doc = "Axes of q, k, v and out in the files; batch is an axis of extent 1.",
     .required = true,
     .read = ats_import_read_axes,
     .schema = "{\"type\": \"array\", \"items\": {\"enum\": [\"head\", \"token\", \"dim\", "
               "\"batch\"]}}",
     .form = "a list such as `[head, token, dim]` or `[batch, token, head, dim]`"},
    {.name = "layers",
     .type = ATS_FIELD_CUSTOM,
     .offset = 0,
     .doc = "What each layer computes.",
     .required = true,
     .read = ats_import_read_layers,
     .schema = OBJECTS_SCHEMA,
     .form = "a list of layer entries"},
    {.name = "samples",
     .type = ATS_FIELD_CUSTOM,
     .offset = 0,
     .doc = "The captured contexts.",
     .required = true,
     .read = ats_import_read_samples,
     .schema = OBJECTS_SCHEMA,
     .form = "a list of samples"},
    {.name = "queries",
     .type = ATS_FIELD_WORD,
     .offset = ROOT(queries),
     .doc = "Rows of q, out, lse, keep and bias: the probes, or every token (the probes' are taken "
            "by their index).",
     .standard = "probes",
     .words = queries_words},
    {.name = "mask",
     .type = ATS_FIELD_WORD,
     .offset = ROOT(mask),
     .doc = "What true means in the tensor keep; must be stated where there is one.",
     .words = mask_words},
    {.name = "words",
     .type = ATS_FIELD_WORD,
     .offset = ROOT(words),
     .doc = "What 16-bit words without a float type (numpy's V2, uint16) are.",
     .words = words_words},
    {.name = "checkpoint",
     .type = ATS_FIELD_TEXT,
     .offset = ROOT(checkpoint),
     .doc = "Which checkpoint of the model."},
    {.name = "weights_hash",
     .type = ATS_FIELD_TEXT,
     .offset = ROOT(weights_hash),
     .doc = "Hash of the weights."},
    {.name = "tokenizer_hash",
     .type = ATS_FIELD_TEXT,
     .offset = ROOT(tokenizer_hash),
     .doc = "Hash of the tokenizer."},
    {.name = "created",
     .type = ATS_FIELD_TEXT,
     .offset = ROOT(created),
     .doc = "When the tensors were captured."},
    {.name = "readouts",
     .type = ATS_FIELD_TEXTS,
     .offset = ROOT(readouts),
     .doc = "Names of the rows of the tensor readouts."},
    {.name = "names",
     .type = ATS_FIELD_SECTION,
     .offset = ROOT(names),
     .doc = "Names of the tensors.",
     .table = &names_table},
};
const ats_table ats_import_table = {"an import header",
                                    "The document is a mapping with these keys.", root_fields,
                                    COUNT(root_fields)};
