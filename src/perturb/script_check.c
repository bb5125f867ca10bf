#include "perturb/script.h"

#include <math.h>

typedef struct checker {
    const ats_edit *edit;
    const ats_sample *sample;
    int64_t limit; /* largest legal position; INT64_MAX: none */
    uint8_t *used; /* [side.count] */
    int64_t next;  /* base row that must come next */
} checker;

static ats_code check_position(int64_t position, int64_t limit, const char *what, int64_t index,
                               ats_err *err)
{
    if (position < 0)
        return ats_fail(err, ATS_E_SUITE,
                        "%s %lld would move to position %lld; positions start at 0", what,
                        (long long)index, (long long)position);
    if (position > limit)
        return ats_fail(err, ATS_E_SUITE,
                        "%s %lld would move to position %lld, past max_position %lld of the layer; "
                        "insert fewer rows or write `spans: {allow_past_max: true}`",
                        what, (long long)index, (long long)position, (long long)limit);
    return ATS_OK;
}

static ats_code check_side_rows(checker *c, const ats_segment *s, ats_err *err)
{
    const int64_t rows = s->stop - s->start;
    if (s->row < 0 || rows < 0 || s->row > c->edit->side.count - rows)
        return ats_fail(err, ATS_E_INTERNAL, "side rows [%lld, %lld) of %lld are not there",
                        (long long)s->row, (long long)(s->row + rows),
                        (long long)c->edit->side.count);
    for (int64_t i = 0; i < rows; i++) {
        if (c->used[s->row + i])
            return ats_fail(err, ATS_E_INTERNAL, "side row %lld is used twice",
                            (long long)(s->row + i));
        c->used[s->row + i] = 1;
    }
    return ATS_OK;
}

static ats_code check_kept(const checker *c, const ats_segment *s, ats_err *err)
{
    if (s->delta == 0) return ATS_OK;
    for (int64_t i = s->start; i < s->stop; i++) {
        const int64_t position = c->sample->position[i] + s->delta;
        const ats_code rc = check_position(position, c->limit, "row", i, err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

static ats_code check_swapped(const checker *c, const ats_segment *s, ats_err *err)
{
    if (!s->swap_key && !s->swap_value)
        return ats_fail(err, ATS_E_INTERNAL, "rows [%lld, %lld) swap neither key nor value",
                        (long long)s->start, (long long)s->stop);
    for (int64_t i = s->start; i < s->stop; i++) {
        const int64_t side = c->edit->side.position[s->row + i - s->start];
        if (side != c->sample->position[i])
            return ats_fail(err, ATS_E_INTERNAL,
                            "swapped row %lld stands at position %lld, its side row at %lld",
                            (long long)i, (long long)c->sample->position[i], (long long)side);
    }
    return ATS_OK;
}

static ats_code check_inserted(const checker *c, const ats_segment *s, ats_err *err)
{
    for (int64_t i = s->row; i < s->row + s->stop; i++) {
        const int64_t position = c->edit->side.position[i];
        const ats_code rc = check_position(position, c->limit, "inserted row", i, err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

static ats_code check_segment(checker *c, int64_t index, ats_err *err)
{
    const ats_segment *s = &c->edit->segments[index];
    if (s->kind == ATS_SEG_ROWS) {
        const ats_code rc = check_side_rows(c, s, err);
        return rc != ATS_OK ? rc : check_inserted(c, s, err);
    }
    if (s->start != c->next || s->stop <= s->start || s->stop > c->sample->n_keys)
        return ats_fail(err, ATS_E_INTERNAL,
                        "segment %lld names rows [%lld, %lld), but row %lld of %lld must come next",
                        (long long)index, (long long)s->start, (long long)s->stop,
                        (long long)c->next, (long long)c->sample->n_keys);
    c->next = s->stop;
    if (s->kind == ATS_SEG_KEEP) return check_kept(c, s, err);
    if (s->kind == ATS_SEG_HIDE) return ATS_OK;
    const ats_code rc = check_side_rows(c, s, err);
    return rc != ATS_OK ? rc : check_swapped(c, s, err);
}

static ats_code check_whole(const checker *c, ats_err *err)
{
    const ats_edit *edit = c->edit;
    if (c->next != c->sample->n_keys)
        return ats_fail(err, ATS_E_INTERNAL, "rows from %lld on are not named", (long long)c->next);
    for (int64_t i = 0; i < edit->side.count; i++)
        if (!c->used[i])
            return ats_fail(err, ATS_E_INTERNAL, "side row %lld is not used", (long long)i);
    if (!(edit->temperature > 0) || isinf(edit->temperature))
        return ats_fail(err, ATS_E_SUITE, "temperature factor %g is not a positive number",
                        edit->temperature);
    if (!(edit->scale >= 0) || isinf(edit->scale))
        return ats_fail(err, ATS_E_SUITE, "scale %g is not a positive number", edit->scale);
    if (edit->query_delta == 0) return ATS_OK;
    for (int64_t i = 0; i < c->sample->n_probes; i++) {
        const int64_t position = c->sample->probes[i].position + edit->query_delta;
        const ats_code rc = check_position(position, c->limit, "probe", i, err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

/* Rows that a probe may see must be numbers; rows swapped for themselves may hold garbage behind a
 * mask, as the base does. */
ats_code ats_edit_check_rows(const ats_edit *edit, const ats_layer *layer, ats_err *err)
{
    if (edit->side.k == NULL || edit->side.v == NULL) return ATS_OK;
    for (int64_t i = 0; i < edit->n_segments; i++) {
        const ats_segment *s = &edit->segments[i];
        if (s->kind != ATS_SEG_ROWS) continue;
        const float *k = edit->side.k + s->row * layer->d_qk;
        const float *v = edit->side.v + s->row * layer->d_v;
        for (int64_t j = 0; j < s->stop * layer->d_qk; j++)
            if (!isfinite(k[j]))
                return ats_fail(err, ATS_E_SUITE,
                                "the key of inserted row %lld is not finite; "
                                "use a smaller norm",
                                (long long)(s->row + j / layer->d_qk));
        for (int64_t j = 0; j < s->stop * layer->d_v; j++)
            if (!isfinite(v[j]))
                return ats_fail(err, ATS_E_SUITE, "the value of inserted row %lld is not finite",
                                (long long)(s->row + j / layer->d_v));
    }
    return ATS_OK;
}

ats_code ats_edit_validate(ats_arena *arena, const ats_edit *edit, const ats_sample *sample,
                           const ats_layer *layer, bool allow_past_max, ats_err *err)
{
    const bool limited = !allow_past_max && layer->max_position > 0;
    checker c = {
        .edit = edit, .sample = sample, .limit = limited ? layer->max_position : INT64_MAX};
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, edit->side.count, &c.used, err));
    for (int64_t i = 0; i < edit->n_segments; i++) ATS_TRY(check_segment(&c, i, err));
    rc = check_whole(&c, err);
out:
    return rc;
}
