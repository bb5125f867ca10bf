#include <jansson.h>

#include "cli/explain_print.h"
#include "cli/session.h"

static const char *const kinds[] = {[ATS_SEG_KEEP] = "keep",
                                    [ATS_SEG_HIDE] = "hide",
                                    [ATS_SEG_ROWS] = "rows",
                                    [ATS_SEG_SWAP] = "swap"};

static json_t *segment_json(const ats_segment *s)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:b, s:b}", "kind", kinds[s->kind], "start",
                     (json_int_t)s->start, "stop", (json_int_t)s->stop, "delta",
                     (json_int_t)s->delta, "row", (json_int_t)s->row, "swap_key", s->swap_key,
                     "swap_value", s->swap_value);
}

/* [count, width] as a list of lists, null where a hidden row holds a non-finite number; a side
 * buffer may lack keys or values. */
static json_t *matrix_json(const float *x, int64_t count, int64_t width)
{
    if (x == NULL) return json_null();
    json_t *rows = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < width; j++)
            json_array_append_new(row, ats_json_real((double)x[i * width + j]));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *ats_explain_edit_json(const ats_explanation *e, bool rows)
{
    const ats_edit *edit = &e->edit;
    json_t *segments = json_array(), *positions = json_array();
    for (int64_t i = 0; i < edit->n_segments; i++)
        json_array_append_new(segments, segment_json(&edit->segments[i]));
    for (int64_t i = 0; i < edit->side.count; i++)
        json_array_append_new(positions, json_integer(edit->side.position[i]));
    json_t *out = json_pack("{s:o, s:o, s:I, s:f, s:f}", "segments", segments, "position",
                            positions, "query_delta", (json_int_t)edit->query_delta, "temperature",
                            edit->temperature, "scale", edit->scale);
    if (out == NULL || !rows) return out;
    json_object_set_new(out, "k", matrix_json(edit->side.k, edit->side.count, e->d_qk));
    json_object_set_new(out, "v", matrix_json(edit->side.v, edit->side.count, e->d_v));
    json_object_set_new(out, "q", matrix_json(edit->q, 1, e->d_qk));
    return out;
}
