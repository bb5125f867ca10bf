#include "perturb/script.h"

#include <stdarg.h>
#include <stdio.h>

/* Text that is measured first and written second. */
typedef struct writer {
    char *text; /* NULL while measuring */
    size_t length, capacity;
} writer;

static void line(writer *w, const char *fmt, ...) ATS_PRINTF(2, 3);
static void line(writer *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *place = w->text != NULL ? w->text + w->length : NULL;
    const int n = vsnprintf(place, w->text != NULL ? w->capacity - w->length : 0, fmt, args);
    va_end(args);
    w->length += (size_t)n;
}

static void segment_line(writer *w, const ats_segment *s, const ats_edit *edit)
{
    const int64_t *position = edit->side.position;
    switch (s->kind) {
    case ATS_SEG_KEEP:
        line(w, "keep [%lld, %lld)", (long long)s->start, (long long)s->stop);
        if (s->delta != 0) line(w, " moved by %+lld", (long long)s->delta);
        break;
    case ATS_SEG_HIDE:
        line(w, "hide [%lld, %lld)", (long long)s->start, (long long)s->stop);
        break;
    case ATS_SEG_ROWS:
        line(w, "rows [%lld, %lld)", (long long)s->row, (long long)(s->row + s->stop));
        if (position != NULL && s->stop > 0)
            line(w, " at positions %lld..%lld", (long long)position[s->row],
                 (long long)position[s->row + s->stop - 1]);
        break;
    case ATS_SEG_SWAP:
        line(w, "swap [%lld, %lld) <- [%lld, %lld) %s", (long long)s->start, (long long)s->stop,
             (long long)s->row, (long long)(s->row + s->stop - s->start),
             s->swap_key && s->swap_value ? "key and value" : (s->swap_key ? "key" : "value"));
        break;
    }
    line(w, "\n");
}

static void whole(writer *w, const ats_edit *edit, int64_t max_lines)
{
    const int64_t shown =
        max_lines > 0 && max_lines < edit->n_segments ? max_lines : edit->n_segments;
    for (int64_t i = 0; i < shown; i++) segment_line(w, &edit->segments[i], edit);
    if (shown < edit->n_segments)
        line(w, "... %lld more segments\n", (long long)(edit->n_segments - shown));
    if (edit->query_delta != 0) line(w, "probes moved by %+lld\n", (long long)edit->query_delta);
    if (edit->temperature != 1) line(w, "temperature x %g\n", edit->temperature);
    if (edit->scale != 0) line(w, "scale %.9g\n", edit->scale);
    if (edit->q != NULL) line(w, "queries replaced\n");
}

ats_code ats_edit_print(ats_arena *arena, const ats_edit *edit, int64_t max_lines, const char **out,
                        ats_err *err)
{
    writer w = {.text = NULL};
    ats_code rc;
    whole(&w, edit, max_lines);
    w.capacity = w.length + 1;
    w.length = 0;
    ATS_TRY(ATS_NEW(arena, (int64_t)w.capacity, &w.text, err));
    if (w.text == NULL) goto out;
    w.text[0] = 0;
    whole(&w, edit, max_lines);
    *out = w.text;
out:
    return rc;
}
