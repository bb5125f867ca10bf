#include "report/summary.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Lines at most: head 2, reasons 4 + 1, weakest 1 + 7 + 1, gates 1 + 6 + 1, tail 1 = 25. */
enum { MAX_REASONS = 4, MAX_WEAKEST = 7, MAX_GATES = 6, TEXT_ROOM = 16384, LINE_ROOM = 400 };

typedef struct writer {
    char *text;
    size_t used;
} writer;

static void line(writer *w, const char *fmt, ...) ATS_PRINTF(2, 3);

/* One line; longer text is cut so that a message cannot push the rest off the screen. */
static void line(writer *w, const char *fmt, ...)
{
    char buffer[LINE_ROOM];
    va_list args;
    va_start(args, fmt);
    const int length = vsnprintf(buffer, sizeof buffer, fmt, args);
    va_end(args);
    if (length >= LINE_ROOM) memcpy(buffer + LINE_ROOM - 4, "...", 4);
    for (char *c = buffer; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
    w->used += (size_t)snprintf(w->text + w->used, TEXT_ROOM - w->used, "%s\n", buffer);
}

static void write_head(writer *w, const ats_summary *s)
{
    line(w, "%s on %s (%s): %lld samples, %lld layers, %lld heads, backend %s", s->suite, s->model,
         s->captures, (long long)s->n_samples, (long long)s->n_layers, (long long)s->n_heads,
         s->backend);
    line(w, "%lld cases ran, %lld skipped, %lld failed, %lld undefined cells, %.1f s",
         (long long)s->n_ok, (long long)s->n_skipped, (long long)s->n_failed,
         (long long)s->n_undefined, s->seconds);
}

static void write_reasons(writer *w, const ats_summary *s)
{
    int64_t rest = 0;
    for (int64_t i = 0; i < s->n_reasons; i++) {
        const ats_summary_reason *r = &s->reasons[i];
        if (i < MAX_REASONS)
            line(w, "  %s %lld: %s", r->what, (long long)r->count, r->text);
        else
            rest += r->count;
    }
    if (rest > 0) line(w, "  and %lld more cases for other reasons", (long long)rest);
}

static void write_weakest(writer *w, const ats_summary *s)
{
    int width = 0;
    if (s->n_weakest == 0) return;
    line(w, "weakest head per perturbation, mean log mass shift of %s in nats:", s->target);
    for (int64_t i = 0; i < s->n_weakest && i < MAX_WEAKEST; i++) {
        const int length = (int)strlen(s->weakest[i].perturbation);
        if (length > width && length <= 40) width = length;
    }
    for (int64_t i = 0; i < s->n_weakest && i < MAX_WEAKEST; i++) {
        const ats_summary_weakest *x = &s->weakest[i];
        char control[48] = "";
        if (x->layer < 0) {
            line(w, "  %-*s  undefined everywhere", width, x->perturbation);
            continue;
        }
        if (!isnan(x->control)) snprintf(control, sizeof control, "   control %+8.4f", x->control);
        line(w, "  %-*s  layer %lld head %lld  %+8.4f%s", width, x->perturbation,
             (long long)x->layer, (long long)x->head, x->treatment, control);
    }
    if (s->n_weakest > MAX_WEAKEST)
        line(w, "  and %lld more perturbations", (long long)s->n_weakest - MAX_WEAKEST);
}

static void write_gates(writer *w, const ats_summary *s)
{
    int64_t judged = 0, failed = 0, shown = 0;
    for (int64_t i = 0; i < s->n_gates; i++) {
        judged += s->gates[i].judged;
        failed += s->gates[i].judged && !s->gates[i].passed;
    }
    if (judged == 0) return;
    line(w, "%lld of %lld gates failed", (long long)failed, (long long)judged);
    for (int64_t i = 0; i < s->n_gates; i++) {
        if (!s->gates[i].judged || shown == MAX_GATES) continue;
        line(w, "  %s", s->gates[i].sentence);
        shown++;
    }
    if (judged > shown) line(w, "  and %lld more gates", (long long)(judged - shown));
}

ats_code ats_summary_text(ats_arena *arena, const ats_summary *summary, const char **out,
                          ats_err *err)
{
    writer w = {.used = 0};
    ats_code rc = ATS_NEW(arena, TEXT_ROOM, &w.text, err);
    if (rc != ATS_OK) return rc;
    write_head(&w, summary);
    write_reasons(&w, summary);
    write_weakest(&w, summary);
    write_gates(&w, summary);
    line(&w, "result %s; next: %s", summary->path, summary->next);
    *out = w.text;
    return ATS_OK;
}
