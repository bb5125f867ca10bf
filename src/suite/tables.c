#include <math.h>
#include <string.h>

#include "suite/draft.h"

#define AT(member) offsetof(ats_draft, suite.member)

static const char *const backend_words[] = {"auto", "reference", "cpu", "cuda", "cublas", NULL};
static const char *const precision_words[] = {"exact", "fast", NULL};
static const char *const axis_words[] = {"name", "role", NULL};
static const char *const contribution_words[] = {"spans", "off", NULL};
static const char *const residual_words[] = {"auto", "on", "off", NULL};
static const char *const detail_words[] = {"probe", "head", NULL};
static const char *const compression_words[] = {"zstd", "deflate", "none", NULL};
static const char *const better_words[] = {"more", "less", "neither", NULL};
static const char *const reduce_words[] = {"mean", "median", "min", "max", NULL};
const char *const ats_mode_words[] = {"overlay", "replace", "shift", "move", NULL};

#define TEXTS_SCHEMA                                                                               \
    "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"array\", \"minItems\": 1, \"items\": "      \
    "{\"type\": \"string\"}}]}"
#define INT_OR_RANGE "{\"type\": [\"integer\", \"string\"]}"
#define INTS_SCHEMA                                                                                \
    "{\"anyOf\": [" INT_OR_RANGE ", {\"type\": \"array\", \"minItems\": 1, "                       \
    "\"items\": " INT_OR_RANGE "}, {\"type\": \"object\", \"additionalProperties\": false, "       \
    "\"required\": [\"every\"], \"properties\": {\"every\": {\"type\": \"integer\", "              \
    "\"minimum\": 1}}}]}"
#define INTS_FORM "`all`, a number, a range `4-12`, a list of both, or `{every: 2}`"
#define ENTRIES_SCHEMA "{\"type\": \"array\", \"items\": {\"type\": \"object\"}}"

static bool read_nothing(ats_reader *reader, const ats_node *node, const ats_field *field,
                         void *target)
{
    (void)reader, (void)node, (void)field, (void)target;
    return true;
}

static void write_nothing(ats_text *text, const void *base) { (void)text, (void)base; }

static bool read_keep(ats_reader *reader, const ats_node *node, const ats_field *field,
                      void *target)
{
    ats_draft *draft = target;
    draft->keep_node = node;
    draft->suite.keep_all = node->kind == ATS_NODE_SCALAR && strcmp(node->text, "all") == 0;
    return draft->suite.keep_all || ats_read_texts(reader, node, field->name, &draft->suite.keep);
}

static bool remember_node(ats_reader *reader, const ats_node *node, const ats_field *field,
                          void *target)
{
    (void)reader, (void)field;
    *(const ats_node **)target = node;
    return true;
}

static const ats_field select_fields[] = {
    {.name = "samples",
     .type = ATS_FIELD_CUSTOM,
     .offset = AT(select),
     .doc = "Samples of the capture, by id or glob.",
     .standard = "all",
     .read = ats_select_read_samples,
     .schema = TEXTS_SCHEMA,
     .form = "`all`, an id, a glob, or a list"},
    {.name = "layers",
     .type = ATS_FIELD_CUSTOM,
     .offset = AT(select.layers),
     .doc = "Layers by the model's numbers; negative numbers count from the last.",
     .standard = "all",
     .read = ats_select_read_ints,
     .schema = INTS_SCHEMA,
     .form = INTS_FORM},
    {.name = "heads",
     .type = ATS_FIELD_CUSTOM,
     .offset = AT(select),
     .doc = "Query heads, by number or by their base mass on a span.",
     .standard = "all",
     .read = ats_select_read_heads,
     .schema = "{\"anyOf\": [" INTS_SCHEMA
               ", {\"type\": \"object\", \"additionalProperties\": false, \"required\": "
               "[\"by\", \"span\", \"min\"], \"properties\": {\"by\": {\"const\": \"mass\"}, "
               "\"span\": {\"type\": \"string\"}, \"min\": {\"type\": \"number\", \"minimum\": 0, "
               "\"maximum\": 1}}}]}",
     .form = "`all`, numbers as for layers, or `{by: mass, span: gold, min: 0.05}`"},
    {.name = "probes",
     .type = ATS_FIELD_CUSTOM,
     .offset = AT(select),
     .doc = "Query rows that are evaluated.",
     .standard = "last",
     .read = ats_select_read_probes,
     .schema = "{\"anyOf\": [" INTS_SCHEMA
               ", {\"type\": \"object\", \"additionalProperties\": false, \"required\": "
               "[\"role\"], \"properties\": {\"role\": {\"type\": \"string\"}}}]}",
     .form = "`last`, `all`, `{role: question}`, or indices"},
};
static const ats_table select_table = {"select", "What of the capture is evaluated.", select_fields,
                                       (int64_t)(sizeof select_fields / sizeof *select_fields)};

static const ats_field attention_fields[] = {
    {.name = "temperature",
     .type = ATS_FIELD_REAL,
     .offset = AT(temperature),
     .doc = "Divides every logit of every route, the base's too.",
     .standard = "1",
     .min = 1e-6,
     .max = 1e6},
    {.name = "backend",
     .type = ATS_FIELD_WORD,
     .offset = AT(backend),
     .doc = "What computes attention; auto takes a GPU where one opens.",
     .standard = "auto",
     .outside_identity = true,
     .words = backend_words},
    {.name = "precision",
     .type = ATS_FIELD_WORD,
     .offset = AT(precision),
     .doc = "fast allows weights rounded to bf16 in front of the values.",
     .standard = "exact",
     .words = precision_words},
};
static const ats_table attention_table = {
    "attention", "How attention is computed.", attention_fields,
    (int64_t)(sizeof attention_fields / sizeof *attention_fields)};

static const ats_field spans_fields[] = {
    {.name = "target",
     .type = ATS_FIELD_TEXT,
     .offset = AT(target),
     .doc = "Role or name of the span that families mean by \"target\".",
     .standard = "gold"},
    {.name = "axis",
     .type = ATS_FIELD_WORD,
     .offset = AT(span_axis),
     .doc = "What the span axis of the result lists.",
     .standard = "name",
     .words = axis_words},
    {.name = "allow_past_max",
     .type = ATS_FIELD_BOOL,
     .offset = AT(allow_past_max),
     .doc = "Rows may move past the layer's max_position.",
     .standard = "false"},
};
static const ats_table spans_table = {"spans", "Which spans matter.", spans_fields,
                                      (int64_t)(sizeof spans_fields / sizeof *spans_fields)};

static const ats_field metrics_fields[] = {
    {.name = "keep",
     .type = ATS_FIELD_CUSTOM,
     .doc = "Metrics that are written.",
     .standard = "all",
     .read = read_keep,
     .schema = TEXTS_SCHEMA,
     .form = "`all`, or a list of names"},
    {.name = "top_k",
     .type = ATS_FIELD_INT,
     .offset = AT(top_k),
     .doc = "Heaviest keys that are listed and compared.",
     .standard = "8",
     .min = 1,
     .max = 64},
    {.name = "contributions",
     .type = ATS_FIELD_WORD,
     .offset = offsetof(ats_draft, contributions),
     .doc = "What each span brings back; off leaves every contribution metric out.",
     .standard = "spans",
     .words = contribution_words},
    {.name = "vectors",
     .type = ATS_FIELD_BOOL,
     .offset = AT(vectors),
     .doc = "Also write contribution vectors.",
     .standard = "false"},
    {.name = "sharpness",
     .type = ATS_FIELD_BOOL,
     .offset = AT(sharpness),
     .doc = "Also tell why each base route is sharp, as `diagnose` does; absent: no."},
    {.name = "residual",
     .type = ATS_FIELD_WORD,
     .offset = AT(residual),
     .doc = "Norms after the head's output projection; auto: where the capture has it.",
     .standard = "auto",
     .words = residual_words},
};
static const ats_table metrics_table = {"metrics", "What is measured.", metrics_fields,
                                        (int64_t)(sizeof metrics_fields / sizeof *metrics_fields)};

static const ats_field output_fields[] = {
    {.name = "detail",
     .type = ATS_FIELD_WORD,
     .offset = AT(detail),
     .doc = "Every probe, or means over probes with the worst one; absent: probe while the result "
            "stays below 2 GiB.",
     .words = detail_words},
    {.name = "compression",
     .type = ATS_FIELD_WORD,
     .offset = AT(compression),
     .doc = "deflate: for readers without the zstd filter.",
     .standard = "zstd",
     .words = compression_words},
    {.name = "level",
     .type = ATS_FIELD_INT,
     .offset = AT(level),
     .doc = "Compression level; deflate ends at 9.",
     .standard = "3",
     .min = 1,
     .max = 22},
};
static const ats_table output_table = {"output", "How the result is stored.", output_fields,
                                       (int64_t)(sizeof output_fields / sizeof *output_fields)};

#define DRAFT(member) offsetof(ats_perturbation_draft, member)
static const ats_field perturbation_fields[] = {
    {.name = "name",
     .type = ATS_FIELD_TEXT,
     .offset = DRAFT(built.name),
     .doc = "Unique in the suite, begins every variant id; absent: the kind."},
    {.name = "kind",
     .type = ATS_FIELD_TEXT,
     .offset = DRAFT(kind),
     .doc = "The family; absent where `combine` stands."},
    {.name = "combine",
     .type = ATS_FIELD_CUSTOM,
     .offset = DRAFT(combine_node),
     .doc =
         "Two perturbations of this suite by name, made at once on every sample; the result then "
         "holds `interaction`, the part of log_mass_shift that the two do not add up to.",
     .read = remember_node,
     .schema = "{\"type\": \"array\", \"minItems\": 2, \"maxItems\": 2, \"items\": "
               "{\"type\": \"string\"}}",
     .form = "`[first, second]`"},
    {.name = "positions",
     .type = ATS_FIELD_CUSTOM,
     .offset = DRAFT(positions_node),
     .doc = "Position mode, required where the family inserts rows; a list sweeps.",
     .read = remember_node,
     .schema = "{\"anyOf\": [{\"enum\": [\"overlay\", \"replace\", \"shift\", \"move\"]}, "
               "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"enum\": [\"overlay\", "
               "\"replace\", \"shift\", \"move\"]}}]}",
     .form = "`overlay`, `replace`, `shift`, `move`"},
    {.name = "control",
     .type = ATS_FIELD_BOOL,
     .offset = DRAFT(control),
     .doc = "Also run the control twin of every variant, where the family has one.",
     .standard = "true"},
    {.name = "breakdown_search",
     .type = ATS_FIELD_BOOL,
     .offset = DRAFT(built.breakdown_search),
     .doc =
         "Also bisect, between the least and the largest dose, for the dose at which the target is "
         "no longer on top.",
     .standard = "false"},
    {.name = "replicates",
     .type = ATS_FIELD_INT,
     .offset = DRAFT(replicates),
     .doc = "Repetitions with random rows and places of their own.",
     .standard = "1",
     .min = 1,
     .max = ATS_REPLICATES_MAX},
    {.name = "exclude",
     .type = ATS_FIELD_CUSTOM,
     .offset = DRAFT(exclude_node),
     .doc = "Cells of the grid to leave out: each entry's clauses must all hold.",
     .read = remember_node,
     .schema = ENTRIES_SCHEMA,
     .form = "list of `{parameter: value or list}`"},
    {.name = "include",
     .type = ATS_FIELD_CUSTOM,
     .offset = DRAFT(include_node),
     .doc = "Further grids: this one with the entry's keys in place of its own.",
     .read = remember_node,
     .schema = ENTRIES_SCHEMA,
     .form = "list of `{key: value or list}`"},
};
const ats_table ats_perturbation_table = {
    "perturbations",
    "Each item is one family with its parameters. A list in a parameter or in `positions` sweeps: "
    "lists multiply, the first key is the slowest, replicates are the fastest. Control twins are "
    "variants of their own, right after their treatment.",
    perturbation_fields, (int64_t)(sizeof perturbation_fields / sizeof *perturbation_fields)};

#define GATE(member) offsetof(ats_gate_draft, gate.member)
static const ats_field gate_fields[] = {
    {.name = "name",
     .type = ATS_FIELD_TEXT,
     .offset = GATE(name),
     .doc = "Unique; names the test case in reports.",
     .required = true},
    {.name = "metric",
     .type = ATS_FIELD_TEXT,
     .offset = GATE(metric),
     .doc = "Variable of the result; base_NAME is the unperturbed route's.",
     .required = true},
    {.name = "span",
     .type = ATS_FIELD_TEXT,
     .offset = GATE(span),
     .doc = "Which span, where the metric has a span axis."},
    {.name = "part",
     .type = ATS_FIELD_TEXT,
     .offset = GATE(part),
     .doc = "Which part (removal, intrusion, dilution, reroute, payload) of delta metrics."},
    {.name = "where",
     .type = ATS_FIELD_CUSTOM,
     .offset = offsetof(ats_gate_draft, where),
     .doc = "Cases that are judged: every clause must hold. Keys: perturbation, kind, arm, "
            "positions, replicate, or a parameter. Absent: all cases, controls among them.",
     .read = remember_node,
     .schema = "{\"$ref\": \"#/definitions/clauses\"}",
     .form = "`{key: value or list}`"},
    {.name = "reduce",
     .type = ATS_FIELD_WORD,
     .offset = offsetof(ats_gate_draft, reduce),
     .doc = "Over probes, then heads, then layers; the sample stays the unit.",
     .standard = "mean",
     .words = reduce_words},
    {.name = "min", .type = ATS_FIELD_REAL, .offset = GATE(min), .doc = "Least value, for `run`."},
    {.name = "max",
     .type = ATS_FIELD_REAL,
     .offset = GATE(max),
     .doc = "Largest value, for `run`."},
    {.name = "max_drop",
     .type = ATS_FIELD_REAL,
     .offset = GATE(max_drop),
     .doc = "Largest fall below the baseline, for `compare`.",
     .max = (double)INFINITY},
    {.name = "max_rise",
     .type = ATS_FIELD_REAL,
     .offset = GATE(max_rise),
     .doc = "Largest rise above the baseline, for `compare`; of metrics where less is better.",
     .max = (double)INFINITY},
    {.name = "equivalence",
     .type = ATS_FIELD_REAL,
     .offset = GATE(equivalence),
     .doc = "`compare` says unchanged when the whole interval lies within this.",
     .max = (double)INFINITY},
    {.name = "better",
     .type = ATS_FIELD_WORD,
     .offset = offsetof(ats_gate_draft, better),
     .doc = "Which way is better, for `compare`; absent: what docs/metrics.md says of the metric.",
     .words = better_words},
};
const ats_table ats_gate_table = {"a gate", "What the result must meet; each item is one demand.",
                                  gate_fields, (int64_t)(sizeof gate_fields / sizeof *gate_fields)};

static const ats_field suite_fields[] = {
    {.name = "suite",
     .type = ATS_FIELD_TEXT,
     .offset = AT(name),
     .doc = "Name of the suite.",
     .required = true},
    {.name = "version",
     .type = ATS_FIELD_INT,
     .offset = offsetof(ats_draft, version),
     .doc = "Version of this format.",
     .standard = "1",
     .min = 1,
     .max = 1},
    {.name = "seed",
     .type = ATS_FIELD_INT,
     .offset = AT(seed),
     .doc = "Seed of every random choice.",
     .standard = "0",
     .max = (double)INFINITY},
    {.name = "include",
     .type = ATS_FIELD_CUSTOM,
     .doc = "Suites that this one builds on, relative to this file. Mappings join key by key; "
            "local keys, lists and values win.",
     .outside_identity = true,
     .read = read_nothing,
     .write = write_nothing,
     .schema = TEXTS_SCHEMA,
     .form = "a path or a list of paths"},
    {.name = "captures",
     .type = ATS_FIELD_TEXTS,
     .offset = AT(captures),
     .doc = "Capture files or globs, relative to this file; --capture replaces them.",
     .outside_identity = true},
    {.name = "select",
     .type = ATS_FIELD_SECTION,
     .doc = "What of the capture is evaluated.",
     .table = &select_table},
    {.name = "attention",
     .type = ATS_FIELD_SECTION,
     .doc = "How attention is computed.",
     .table = &attention_table},
    {.name = "spans",
     .type = ATS_FIELD_SECTION,
     .doc = "Which spans matter.",
     .table = &spans_table},
    {.name = "perturbations",
     .type = ATS_FIELD_CUSTOM,
     .doc = "Families and their grids.",
     .required = true,
     .read = ats_perturbations_read,
     .write = ats_perturbations_write,
     .schema = "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": "
               "\"#/definitions/perturbation\"}}",
     .form = "list, see below"},
    {.name = "metrics",
     .type = ATS_FIELD_SECTION,
     .doc = "What is measured.",
     .table = &metrics_table},
    {.name = "output",
     .type = ATS_FIELD_SECTION,
     .doc = "How the result is stored.",
     .outside_identity = true,
     .table = &output_table},
    {.name = "gates",
     .type = ATS_FIELD_CUSTOM,
     .doc = "What the result must meet.",
     .read = ats_gates_read,
     .write = ats_gates_write,
     .schema = "{\"type\": \"array\", \"items\": {\"$ref\": \"#/definitions/gate\"}}",
     .form = "list, see below"},
};
const ats_table ats_suite_table = {"the suite", "One mapping.", suite_fields,
                                   (int64_t)(sizeof suite_fields / sizeof *suite_fields)};
