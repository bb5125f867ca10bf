/* Perturbation families: one descriptor and one file each, one line in the table.
 *
 * A family turns a base sequence into an edit script in two steps: `layout` fixes the geometry
 * (segments, positions, counts; no tensors needed, so `plan` can check everything before work
 * starts), `fill` makes the side rows, the queries and the record of what was realised.
 * Ownership: everything a build returns lives in ctx->arena. Thread-safe with one arena a thread.
 */
#ifndef ATS_PERTURB_FAMILY_H
#define ATS_PERTURB_FAMILY_H

#include "base/arena.h"
#include "base/edit.h"
#include "capture/capture.h"

typedef enum ats_param_type {
    ATS_PARAM_INT,
    ATS_PARAM_REAL,
    ATS_PARAM_WORD,
    ATS_PARAM_TEXT
} ats_param_type;

/* One parameter of a family: drives parsing, the JSON Schema, the docs and the case coordinates.
 * A parameter with `group` is written in YAML inside its group's word:
 * `source: {similar: {cosine: 0.8}}` sets source = similar and cosine = 0.8 (group "source",
 * group_word "similar"); `placement: {depth: 0.5}` sets placement = depth and depth = 0.5. */
typedef struct ats_param_def {
    const char *name;
    ats_param_type type;
    const char *unit; /* "1", "rows", "nats", ... */
    const char *doc;  /* one sentence */
    bool required;
    double number;            /* default of INT and REAL; NaN: does not apply unless given */
    const char *text;         /* default of WORD and TEXT; NULL: none */
    double min, max;          /* inclusive */
    const char *const *words; /* NULL-terminated choices of a WORD */
    const char *group, *group_word;
} ats_param_def;

/* A parameter's value in one variant; same order as the family's table. */
typedef struct ats_param {
    bool set;         /* given or defaulted; false: does not apply */
    double number;    /* INT (exact) and REAL */
    const char *text; /* WORD and TEXT */
} ats_param;

typedef enum ats_position_mode {
    ATS_MODE_NONE,
    ATS_MODE_OVERLAY,
    ATS_MODE_REPLACE,
    ATS_MODE_SHIFT,
    ATS_MODE_MOVE
} ats_position_mode;
typedef enum ats_arm { ATS_ARM_TREATMENT, ATS_ARM_CONTROL } ats_arm;

/* Tensors from which donor rows may come. */
typedef struct ats_donor {
    const ats_sample *sample;
    const ats_attention *attention; /* same layer */
} ats_donor;

/* One of the two variants that a combined one consists of. */
typedef struct ats_build_part {
    const struct ats_family *family;
    const ats_param *params;
    ats_position_mode mode;
    int64_t replicate;
    const char *variant_id;
} ats_build_part;

typedef struct ats_build {
    ats_arena *arena;
    const ats_capture *capture;
    const ats_layer *layer;
    const ats_sample *sample;
    const ats_attention *attention; /* NULL in layout-only use */
    int64_t kv_head;                /* side rows are per key head; layout must not depend on it */
    int64_t n_donors;
    const ats_donor *donors; /* donors[0] is the sample itself */
    const struct ats_family *family;
    const ats_param *params; /* [family->n_params] */
    ats_position_mode mode;
    ats_arm arm;
    int64_t replicate;
    uint64_t seed;          /* of the suite */
    const char *variant_id; /* treatment's id: both arms share places, not streams */
    const char *target;     /* role (or name) the suite means by "target" */
    bool allow_past_max;    /* moves past max_position allowed by the suite */
    int64_t n_heads;       /* query heads of this key head that are evaluated; 0: the whole group */
    const int64_t *heads;  /* [n_heads] */
    int64_t n_probes;      /* probes that are evaluated; 0: all of the sample */
    const int64_t *probes; /* [n_probes] indices of the sample's probes */
    int64_t n_parts;       /* 2 for kind combine, else 0 */
    ats_build_part part[2];
    struct ats_build_cache *cache; /* of this thread (perturb/cache.h), or NULL; changes no bit */
} ats_build;

/* What an edit really did, row by row, for the result file. */
typedef struct ats_realised {
    int64_t rows;                /* side rows inserted or overwritten */
    const int64_t *donor_sample; /* [rows] index into the capture, -1: not a donor; or NULL */
    const int64_t *donor_row;    /* [rows] or NULL */
    double cosine, norm_ratio,
        logit; /* means over rows and probes of the group; NaN: does not apply */
} ats_realised;

typedef struct ats_built {
    bool skipped;     /* this sample lacks what the family needs: not an error */
    char reason[256]; /* why skipped */
    ats_edit edit;
    ats_realised realised;
    double dose; /* value on the family's dose axis; NaN: none */
} ats_built;

typedef struct ats_family {
    const char *kind;    /* "distractors" */
    const char *summary; /* one sentence */
    const ats_param_def *params;
    int64_t n_params;
    const char *dose; /* name of the parameter that is the dose axis, or NULL */
    const char *const
        *doses; /* others that may be it where `dose` is fixed, NULL-terminated; NULL */
    bool has_control;
    bool has_positions; /* `positions:` is a required field */
    /* Checks parameters that the table cannot (combinations); no sample yet. */
    ats_code (*check)(const ats_param *params, ats_position_mode mode, ats_err *err);
    ats_code (*layout)(const ats_build *ctx, ats_built *out, ats_err *err);
    ats_code (*fill)(const ats_build *ctx, ats_built *out,
                     ats_err *err); /* after layout, same out */
    /* What fill spends beyond making side rows, in normal numbers drawn (about 30 ns each); after
     * layout, without tensors. NULL: little. For estimates of time alone. */
    double (*effort)(const ats_build *ctx, const ats_built *out);
} ats_family;

const ats_family *const *ats_families(int64_t *count);
const ats_family *ats_family_find(const char *kind); /* NULL: none */
/* Index of a parameter in its family's table, -1: none. */
int64_t ats_family_param(const ats_family *family, const char *name);

/* Every family with its parameters as Markdown: the reference part of docs/perturbations.md. */
ATS_MUST_CHECK ats_code ats_families_markdown(ats_arena *arena, const char **out, ats_err *err);

/* layout, then fill when ctx->attention is there; the script is validated. Errors name family,
 * sample, layer and parameter. */
ATS_MUST_CHECK ats_code ats_perturb_build(const ats_build *ctx, ats_built *out, ats_err *err);

/* A part as it is built alone: the same id, so the same places and rows. */
ats_build ats_build_alone(const ats_build *ctx, const ats_build_part *part);
/* The family's effort for one key head after a layout; of a combined one, that of its parts. */
double ats_perturb_effort(const ats_build *ctx, const ats_built *out);

const char *ats_mode_name(ats_position_mode mode);
bool ats_mode_parse(const char *name, ats_position_mode *out);

#endif
