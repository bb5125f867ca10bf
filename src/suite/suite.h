/* The suite document: what to run, on what, and what to demand of the result.
 *
 * Parsed from YAML through field tables (yaml/), expanded into numbered variants. The same
 * tables print the JSON Schema.
 * Ownership: a suite owns everything it points to, in its arena; release with ats_suite_free. */
#ifndef ATS_SUITE_SUITE_H
#define ATS_SUITE_SUITE_H

#include "base/arena.h"
#include "metrics/metric.h"
#include "metrics/reduce.h"
#include "perturb/family.h"
#include "yaml/scalar.h" /* ats_strings */

/* Where in the user's file something was written. */
typedef struct ats_place {
    const char *file;
    int64_t line, column; /* from 1 */
} ats_place;

typedef struct ats_select_ints { /* layers, heads, probe indices */
    bool all;
    int64_t count;
    const int64_t *items; /* ranges "4-12" already expanded; negative counts from the end */
    int64_t every;        /* 0, or take every n-th of the model's list */
} ats_select_ints;

typedef struct ats_select {
    bool all_samples;
    ats_strings samples; /* ids or globs (fnmatch) */
    ats_select_ints layers, heads;
    const char *heads_by_span; /* {by: mass, span: gold, min: 0.05}; NULL: not used */
    double heads_min_mass;
    enum { ATS_PROBES_LAST, ATS_PROBES_ALL, ATS_PROBES_ROLE, ATS_PROBES_INDEX } probes;
    const char *probe_role;
    ats_select_ints probe_index;
} ats_select;

typedef struct ats_perturbation {
    const char *name; /* unique in the suite */
    const ats_family *family;
    bool control;          /* also run the control twin */
    bool breakdown_search; /* bisect for the dose at which the target leaves the top */
    int64_t replicates;
    ats_place place;
} ats_perturbation;

/* One cell of the grid. Control twins are variants of their own, right after their treatment. */
typedef struct ats_variant {
    const char *id; /* unique, readable, stable: "near-duplicates/overlay/cosine=0.8/count=4#0" */
    const char *base_id;  /* the treatment's id in both arms: names the random streams' places */
    int64_t perturbation; /* index */
    ats_position_mode mode;
    ats_arm arm;
    int64_t replicate;
    const ats_param *params; /* [family->n_params] */
    int64_t n_parts;         /* 2 for kind combine, else 0 */
    int64_t part[2];         /* indices of the variants that are combined */
} ats_variant;

/* `where` filter of a gate: every clause must hold. */
typedef struct ats_clause {
    const char *key;   /* perturbation, kind, arm, positions, replicate or a parameter name */
    ats_strings words; /* any of these texts (numbers compare as numbers) */
} ats_clause;

typedef struct ats_gate {
    const char *name;
    const char *metric; /* variable of the result */
    const char *span;   /* NULL when the metric has no span axis */
    const char *part;   /* NULL when no part axis */
    int64_t n_where;
    const ats_clause *where;
    ats_reduction reduce;
    double min, max, max_drop, max_rise, equivalence; /* NaN: not asked */
    ats_better better;                                /* the gate's own word, or the metric's */
    ats_place place;
} ats_gate;

typedef struct ats_suite {
    ats_arena arena;
    const char *path, *name;
    uint64_t seed;
    ats_strings captures; /* globs, already relative to the process */
    ats_select select;
    double temperature;    /* on every route, base too */
    const char *backend;   /* auto, reference, cpu, ... */
    const char *precision; /* exact | fast */
    const char *target;    /* role or name that families mean by "target" */
    const char *span_axis; /* "name" | "role": what the span axis of the result lists */
    bool allow_past_max;
    int64_t n_perturbations;
    const ats_perturbation *perturbations;
    int64_t n_variants;
    const ats_variant *variants;
    bool keep_all;
    ats_strings keep; /* metric names; when not keep_all */
    int64_t top_k;
    bool vectors;
    bool sharpness;          /* diagnose every base row too */
    const char *residual;    /* auto | on | off */
    const char *detail;      /* probe | head | NULL: not said */
    const char *compression; /* zstd | deflate | none */
    int64_t level;
    int64_t n_gates;
    const ats_gate *gates;
    const char *resolved; /* the suite after includes, overrides and defaults, canonical YAML */
    char hash[33];        /* XXH128 of the resolved suite without paths, backend and output */
} ats_suite;

/* overrides: `--set a.b.c=value` texts. On failure err holds every error of the file (cap 20), each
 * `file:line:col: error: message`, the source line and a caret. */
ATS_MUST_CHECK ats_code ats_suite_load(const char *path, const char *const *overrides,
                                       int64_t n_overrides, ats_suite **out, ats_err *err);
/* The same from text, for example the resolved suite of a result file; name stands in messages. */
ATS_MUST_CHECK ats_code ats_suite_parse(const char *name, const char *text,
                                        const char *const *overrides, int64_t n_overrides,
                                        ats_suite **out, ats_err *err);
void ats_suite_free(ats_suite *suite);
/* The JSON Schema (draft-07) of the suite file, as text in the arena. */
ATS_MUST_CHECK ats_code ats_suite_schema(ats_arena *arena, const char **out, ats_err *err);

/* Reference of every field and family parameter, Markdown, as text in the arena. */
ATS_MUST_CHECK ats_code ats_suite_reference(ats_arena *arena, const char **out, ats_err *err);

/* Is the metric (or its base twin) among those that the suite wants written? */
bool ats_suite_keeps(const ats_suite *suite, const ats_metric *metric);

/* Does a case pass a gate's filter? */
bool ats_gate_matches(const ats_suite *suite, const ats_gate *gate, const ats_variant *variant);
/* Whether it has something for `compare`: max_drop, max_rise or equivalence. */
bool ats_gate_compares(const ats_gate *gate);

#endif
