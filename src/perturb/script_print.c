#include "base/text.h"
#include "perturb/script.h"

static void segment_line(ats_text *w, const ats_segment *s, const ats_edit *edit)
{
    const int64_t *position = edit->side.position;
    switch (s->kind) {
    case ATS_SEG_KEEP:
        ats_text_add(w, "keep [%lld, %lld)", (long long)s->start, (long long)s->stop);
        if (s->delta != 0) ats_text_add(w, " moved by %+lld", (long long)s->delta);
        break;
    case ATS_SEG_HIDE:
        ats_text_add(w, "hide [%lld, %lld)", (long long)s->start, (long long)s->stop);
        break;
    case ATS_SEG_ROWS:
        ats_text_add(w, "rows [%lld, %lld)", (long long)s->row, (long long)(s->row + s->stop));
        if (position != NULL && s->stop > 0)
            ats_text_add(w, " at positions %lld..%lld", (long long)position[s->row],
                         (long long)position[s->row + s->stop - 1]);
        break;
    case ATS_SEG_SWAP:
        ats_text_add(
            w, "swap [%lld, %lld) <- [%lld, %lld) %s", (long long)s->start, (long long)s->stop,
            (long long)s->row, (long long)(s->row + s->stop - s->start),
            s->swap_key && s->swap_value ? "key and value" : (s->swap_key ? "key" : "value"));
        break;
    }
    ats_text_add(w, "\n");
}

ats_code ats_edit_print(ats_arena *arena, const ats_edit *edit, int64_t max_lines, const char **out,
                        ats_err *err)
{
    ats_text w = {.arena = arena, .err = err};
    const int64_t all = edit->n_segments;
    const int64_t shown = max_lines > 0 && max_lines < all ? max_lines : all;
    for (int64_t i = 0; i < shown; i++) segment_line(&w, &edit->segments[i], edit);
    if (shown < all) ats_text_add(&w, "... %lld more segments\n", (long long)(all - shown));
    if (edit->query_delta != 0)
        ats_text_add(&w, "probes moved by %+lld\n", (long long)edit->query_delta);
    if (edit->temperature != 1) ats_text_add(&w, "temperature x %g\n", edit->temperature);
    if (edit->scale != 0) ats_text_add(&w, "scale %.9g\n", edit->scale);
    if (edit->q != NULL) ats_text_add(&w, "queries replaced\n");
    return ats_text_done(&w, out);
}
