/* A suite while it is being read: what the field tables fill, what expansion and gates need.
 * Private to suite/. Ownership: everything lives in the draft's arena, which becomes the suite's.
 */
#ifndef ATS_SUITE_DRAFT_H
#define ATS_SUITE_DRAFT_H

#include "suite/suite.h"
#include "yaml/field.h"

enum { ATS_VARIANTS_MAX = 100000, ATS_REPLICATES_MAX = 10000 };

/* One setting of a variant: a parameter, or the positions when param is ATS_POSITIONS. */
enum { ATS_POSITIONS = -1 };
typedef struct ats_assign {
    int64_t param;
    ats_param value;
    ats_position_mode mode;
} ats_assign;

/* Settings that come together: {similar: {cosine: 0.8}} sets source and cosine. */
typedef struct ats_point {
    int64_t count;
    const ats_assign *assigns;
} ats_point;

/* One key of a perturbation and the points it sweeps. */
typedef struct ats_axis {
    const char *key;
    const ats_node *node; /* value */
    int64_t count;
    const ats_point *points;
} ats_axis;

typedef struct ats_grid {
    int64_t count;
    ats_axis *axes; /* in the order written: the first is the slowest */
} ats_grid;

/* A mapping of clauses with its place (exclude entry, or a gate's `where`). */
typedef struct ats_filter {
    const ats_node *node;
    int64_t count;
    const ats_clause *clauses;
} ats_filter;

typedef struct ats_perturbation_draft {
    ats_perturbation built; /* name, family, control, replicates, place */
    const char *kind;
    bool control;
    int64_t replicates;
    const ats_node *combine_node; /* `combine: [first, second]` */
    const ats_node *node, *exclude_node, *include_node, *positions_node;
    ats_grid grid;
    int64_t n_exclude, n_include;
    const ats_filter *exclude;
    const ats_grid *include; /* whole grids: axes of `grid` with the entry's in their place */
} ats_perturbation_draft;

typedef struct ats_gate_draft {
    ats_gate gate;
    const char *reduce, *better;
    ats_filter where;
    const ats_node *node;
} ats_gate_draft;

typedef struct ats_draft {
    ats_suite suite;
    int64_t version;
    const char *contributions;
    const ats_node *root, *keep_node;
    int64_t n_perturbations;
    ats_perturbation_draft *perturbations;
    int64_t n_gates;
    ats_gate_draft *gates;
} ats_draft;

extern const ats_table ats_suite_table, ats_perturbation_table, ats_gate_table;
extern const char *const ats_mode_words[];

/* document.c: text -> one tree, after includes and overrides; NULL after issues. */
ATS_MUST_CHECK ats_code ats_document_load(ats_reader *reader, const ats_source *source,
                                          const char *const *overrides, int64_t n_overrides,
                                          const ats_node **out);
/* path as it is meant in a file: relative to the file's folder unless absolute. */
ATS_MUST_CHECK ats_code ats_document_path(ats_reader *reader, const ats_node *node,
                                          const char *path, const char **out);

/* select.c: readers of `select` fields. */
bool ats_select_read_samples(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_select_read_ints(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_select_read_heads(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_select_read_probes(ats_reader *, const ats_node *, const ats_field *, void *);

/* sweep.c: the points of one key. False after issues. */
bool ats_sweep_axis(ats_reader *reader, const ats_family *family, const ats_entry *entry,
                    ats_axis *out);
/* Does any parameter live in this one's mapping (`source`, `placement`)? */
bool ats_param_is_group(const ats_family *family, const ats_param_def *def);

/* perturbation.c, gate.c: readers of the two lists. */
bool ats_perturbations_read(ats_reader *, const ats_node *, const ats_field *, void *);
bool ats_gates_read(ats_reader *, const ats_node *, const ats_field *, void *);

/* filter.c: clauses of `where` and `exclude`. */
bool ats_filter_read(ats_reader *reader, const ats_node *node, const char *what, ats_filter *out);
/* Keys and words against the families in use; family: the only one, or NULL for the suite's. */
bool ats_filter_check(ats_reader *reader, const ats_draft *draft, const ats_filter *filter,
                      const ats_family *family, const char *what);
bool ats_clause_matches(const ats_perturbation *perturbation, const ats_variant *variant,
                        const ats_clause *clause);

/* expand.c: perturbations and variants of the suite; issues for what cannot be. */
ATS_MUST_CHECK ats_code ats_suite_expand(ats_reader *reader, ats_draft *draft);
/* identity.c: a variant's id. */
ATS_MUST_CHECK ats_code ats_variant_id(ats_reader *reader, const ats_perturbation *perturbation,
                                       const ats_variant *variant, const bool *given,
                                       const char **out);

/* gate.c: gates against metrics and variants. */
ATS_MUST_CHECK ats_code ats_gates_check(ats_reader *reader, ats_draft *draft, bool expanded);
/* resolve.c: canonical text and hash. */
ATS_MUST_CHECK ats_code ats_suite_resolve(ats_reader *reader, ats_draft *draft);
void ats_perturbations_write(ats_text *text, const void *base);
void ats_gates_write(ats_text *text, const void *base);

#endif
