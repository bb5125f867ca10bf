#include "report/summary.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of ATS_SUMMARY_LINES: head 2, tail 1, reasons 4 + 1, sharpness 1, failed gates 1 + 5 + 1;
 * perturbations get what is left, 7 at least, and passed gates what they leave. */
enum { MAX_REASONS = 4, MAX_FAILED = 5, TEXT_ROOM = 16384, LINE_ROOM = 400 };

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

static int64_t lines_of(const writer *w)
{
    int64_t n = 0;
    for (const char *c = w->text; *c != '\0'; c++) n += *c == '\n';
    return n;
}

static void write_perturbation(writer *w, const ats_summary_weakest *x, int width)
{
    char text[LINE_ROOM];
    int used = 0;
    if (x->layer < 0) {
        line(w, "  %-*s  undefined everywhere", width, x->perturbation);
        return;
    }
    for (int64_t i = 0; i < x->n_heads; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%lld/%lld %+.3g",
                         i > 0 ? "  " : "", (long long)x->heads[i].layer,
                         (long long)x->heads[i].head, x->heads[i].treatment);
    if (!isnan(x->control))
        used += snprintf(text + used, sizeof text - (size_t)used, "  control %+.3g", x->control);
    if (x->curve != NULL) snprintf(text + used, sizeof text - (size_t)used, "  %.160s", x->curve);
    line(w, "  %-*s  %s", width, x->perturbation, text);
}

/* room: lines, this heading's and that of the rest included. */
static void write_weakest(writer *w, const ats_summary *s, int64_t room)
{
    int width = 0;
    if (s->n_weakest == 0) return;
    const int64_t shown = s->n_weakest <= room - 1 ? s->n_weakest : room - 2;
    line(w, "five weakest heads per perturbation: layer/head and mean log mass shift of %s, nats:",
         s->target);
    for (int64_t i = 0; i < shown; i++) {
        const int length = (int)strlen(s->weakest[i].perturbation);
        if (length > width && length <= 40) width = length;
    }
    for (int64_t i = 0; i < shown; i++) write_perturbation(w, &s->weakest[i], width);
    if (s->n_weakest > shown)
        line(w, "  and %lld more perturbations", (long long)(s->n_weakest - shown));
}

static void write_sharpness(writer *w, const ats_summary *s)
{
    char text[LINE_ROOM] = "";
    int64_t heads = 0;
    int used = 0;
    for (int c = 0; c < ATS_N_LABELS; c++) {
        heads += s->sharpness[c];
        if (s->sharpness[c] > 0)
            used +=
                snprintf(text + used, sizeof text - (size_t)used, "%s%s %lld", used > 0 ? ", " : "",
                         ats_cause_name((ats_cause)c), (long long)s->sharpness[c]);
    }
    if (heads > 0)
        line(w, "why routes are sharp, layers x heads by cause: %s; the report has the map", text);
}

static void count_gates(const ats_summary *s, int64_t *judged, int64_t *failed)
{
    *judged = *failed = 0;
    for (int64_t i = 0; i < s->n_gates; i++) {
        *judged += s->gates[i].judged;
        *failed += s->gates[i].judged && !s->gates[i].passed;
    }
}

/* Failed gates come first in the list. room: lines, the heading included. */
static void write_gates(writer *w, const ats_summary *s, int64_t room)
{
    int64_t judged, failed, shown = 0;
    count_gates(s, &judged, &failed);
    if (judged == 0) return;
    const int64_t most = failed <= room - 1 ? room - 1 : room - 2;
    line(w, "%lld of %lld gates failed", (long long)failed, (long long)judged);
    for (int64_t i = 0; i < s->n_gates && shown < most; i++) {
        if (!s->gates[i].judged) continue;
        line(w, "  %s", s->gates[i].sentence);
        shown++;
    }
    if (shown < failed) line(w, "  and %lld more failed gates", (long long)(failed - shown));
}

ats_code ats_summary_text(ats_arena *arena, const ats_summary *summary, const char **out,
                          ats_err *err)
{
    writer w = {.used = 0};
    ats_code rc = ATS_NEW(arena, TEXT_ROOM, &w.text, err);
    if (rc != ATS_OK) return rc;
    write_head(&w, summary);
    write_reasons(&w, summary);
    write_sharpness(&w, summary);
    int64_t judged, failed;
    count_gates(summary, &judged, &failed);
    const int64_t kept = judged == 0 ? 0 : 1 + (failed <= MAX_FAILED ? failed : MAX_FAILED + 1);
    write_weakest(&w, summary, ATS_SUMMARY_LINES - 1 - lines_of(&w) - kept);
    write_gates(&w, summary, ATS_SUMMARY_LINES - 1 - lines_of(&w));
    line(&w, "result %s; next: %s", summary->path, summary->next);
    *out = w.text;
    return ATS_OK;
}
