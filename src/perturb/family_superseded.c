#include <string.h>

#include "perturb/families.h"
#include "perturb/params.h"
#include "perturb/annotated.h"
#include "perturb/place.h"
#include "perturb/rows.h"
#include "perturb/target.h"

static const char *const words_order[] = {"old_first", "new_first", NULL};
static const char *const words_arrangement[] = {"blocked", "interleaved", NULL};
static const char *const words_annotated[] = {
    "none", "swap", "hide_stale", "hide_current", "place_stale", "place_current", NULL};

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    {.name = "similarity",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Cosine of a stale version's keys to the span's, in content space.",
     .number = 0.9,
     .min = -1,
     .max = 1},
    {.name = "payload_distance",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "1 - cosine of a stale version's values to the span's, same norm.",
     .number = 1,
     .min = 0,
     .max = 2},
    {.name = "order",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "old_first: stale versions stand before the span; new_first: after it.",
     .text = "old_first",
     .words = words_order},
    {.name = "gap",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "Rows left between the span and the versions, and between blocked versions.",
     .number = 0,
     .min = 0,
     .max = ATS_ROWS_MAX},
    {.name = "arrangement",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "blocked: version after version; interleaved: row by row.",
     .text = "blocked",
     .words = words_arrangement},
    {.name = "annotated",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "What happens to the spans stale and current of the sample instead of inserting.",
     .text = "none",
     .words = words_annotated},
    {.name = "stale",
     .type = ATS_PARAM_TEXT,
     .unit = "1",
     .doc = "Name or role of the stale span.",
     .text = "stale"},
    {.name = "current",
     .type = ATS_PARAM_TEXT,
     .unit = "1",
     .doc = "Name or role of the current span.",
     .text = "current"},
    {.name = "to",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Depth to which place_stale or place_current moves the span.",
     .number = NAN,
     .min = 0,
     .max = 1},
    {.name = "versions",
     .type = ATS_PARAM_INT,
     .unit = "1",
     .doc = "Number of stale versions inserted; none with `annotated`.",
     .number = 1,
     .min = 1,
     .max = ATS_ROWS_MAX},
};

static ats_code check(const ats_param *values, ats_position_mode mode, ats_err *err)
{
    const ats_family *family = &ats_family_superseded;
    const char *annotated = ats_table_text(family, values, "annotated");
    if (strcmp(annotated, "none") == 0) return ATS_OK;
    const bool hide = strncmp(annotated, "hide", 4) == 0,
               place = strncmp(annotated, "place", 5) == 0;
    if (place && isnan(ats_table_number(family, values, "to")))
        return ats_fail(err, ATS_E_SUITE, "superseded: `annotated: %s` needs `to`, a depth in 0..1",
                        annotated);
    if (mode == (hide ? ATS_MODE_OVERLAY : ATS_MODE_MOVE)) return ATS_OK;
    return ats_fail(err, ATS_E_SUITE,
                    "superseded: `annotated: %s` %s; write `positions: %s`, not %s", annotated,
                    hide ? "moves nothing" : "moves rows and adds none", hide ? "overlay" : "move",
                    ats_mode_name(mode));
}

static bool is_annotated(const ats_build *ctx) { return !ats_arg_is(ctx, "annotated", "none"); }

static ats_code layout(const ats_build *ctx, ats_built *out, ats_err *err)
{
    ats_pool pool;
    ats_code rc = ATS_OK;
    if (is_annotated(ctx)) return ats_annotated_layout(ctx, out, err);
    const ats_span *span = ats_target_before_probes(ctx, out);
    if (span == NULL) return ATS_OK;
    const int64_t versions = ats_arg_int(ctx, "versions"), length = span->stop - span->start;
    const bool interleaved = ats_arg_is(ctx, "arrangement", "interleaved");
    const int64_t gap = ats_arg_int(ctx, "gap");
    const ats_place place = {.start = span->start,
                             .stop = span->stop,
                             .units = interleaved ? 1 : versions,
                             .unit_rows = interleaved ? versions * length : length,
                             .placement =
                                 ats_arg_is(ctx, "order", "old_first") ? "before" : "after",
                             .free_zone = gap,
                             .gap = gap};
    ATS_TRY(ats_place_layout(ctx, &place, out, err));
    if (out->edit.side.count > 0) ATS_TRY(ats_pool_make(ctx, 2, &pool, err));
out:
    return rc;
}

static ats_code fill(const ats_build *ctx, ats_built *out, ats_err *err)
{
    ats_rows rows;
    ats_code rc = ATS_OK;
    if (is_annotated(ctx)) return ATS_OK;
    const ats_span *span = ats_target_find(ctx, out);
    const int64_t versions = ats_arg_int(ctx, "versions");
    const bool control = ctx->arm == ATS_ARM_CONTROL;
    ATS_TRY(ats_rows_begin(ctx, out, span->start, span->stop, &rows, err));
    if (ats_arg_is(ctx, "arrangement", "interleaved"))
        for (int64_t j = 0; j < rows.n; j++)
            rows.target[j] = rows.from[j] = span->start + j / versions;
    ATS_TRY(ats_keys_similar(&rows, control ? "control keys" : "keys",
                             control ? 0 : ats_arg(ctx, "similarity"), 1, false, err));
    ATS_TRY(ats_values_similar(&rows, "values", 1 - ats_arg(ctx, "payload_distance"), err));
    rc = ats_rows_finish(&rows, out, err);
out:
    return rc;
}

const ats_family ats_family_superseded = {
    .kind = "superseded",
    .summary = "Stale versions of a fact beside the current one, inserted or already there.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "versions",
    .doses = (const char *const[]){"to", NULL},
    .has_control = true,
    .has_positions = true,
    .check = check,
    .layout = layout,
    .fill = fill,
};
