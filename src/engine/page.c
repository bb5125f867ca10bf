#include "engine/page.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "capture/capture.h"
#include "report/page.h"

enum { PATH_ROOM = 4096 };

/* The first capture that the result names, beside it or here. */
static bool locate(const ats_page_request *request, const char *names, char *path, size_t size)
{
    const char *slash = strrchr(request->result, '/');
    const int folder = slash != NULL ? (int)(slash - request->result) + 1 : 0;
    const int first = (int)strcspn(names, " ,");
    if (request->capture != NULL) {
        snprintf(path, size, "%s", request->capture);
        return true;
    }
    snprintf(path, size, "%.*s%.*s", folder, request->result, first, names);
    if (first > 0 && access(path, R_OK) == 0) return true;
    snprintf(path, size, "%.*s", first, names);
    return first > 0 && access(path, R_OK) == 0;
}

/* The tokens of a span in a row, cut where it gets long. */
static ats_code span_text(ats_arena *arena, const ats_sample *sample, const ats_span *span,
                          const char **out, ats_err *err)
{
    enum { MOST = 60 };
    ats_text text = {.arena = arena, .err = err};
    if (sample->token_text == NULL) {
        *out = NULL;
        return ATS_OK;
    }
    for (int64_t i = span->start; i < span->stop && i < span->start + MOST; i++)
        ats_text_add(&text, "%s", sample->token_text[i]);
    if (span->stop > span->start + MOST) ats_text_add(&text, " \xe2\x80\xa6");
    return ats_text_done(&text, out);
}

/* Spans of the first sample as shares of the rows before its first probe. */
static ats_code take_spans(ats_arena *arena, const ats_capture *capture, ats_page_options *options,
                           ats_err *err)
{
    const ats_sample *sample = &capture->samples[0];
    int64_t end = sample->n_keys;
    for (int64_t p = 0; p < sample->n_probes; p++)
        if (sample->probes[p].index >= 0 && sample->probes[p].index < end)
            end = sample->probes[p].index;
    ats_page_span *spans = NULL;
    ats_code rc;
    ATS_TRY(ats_arena_strdup(arena, sample->id, &options->span_sample, err));
    ATS_TRY(ATS_NEW0(arena, sample->n_spans, &spans, err));
    for (int64_t i = 0; i < sample->n_spans; i++) {
        ATS_TRY(ats_arena_strdup(arena, sample->spans[i].name, &spans[i].name, err));
        ATS_TRY(span_text(arena, sample, &sample->spans[i], &spans[i].text, err));
        spans[i].start = end > 0 ? (double)sample->spans[i].start / (double)end : 0;
        spans[i].stop = end > 0 ? (double)sample->spans[i].stop / (double)end : 0;
    }
    options->n_spans = sample->n_spans;
    options->spans = spans;
out:
    return rc;
}

static ats_code read_spans(ats_arena *arena, const ats_page_request *request,
                           const ats_page_result *result, ats_page_options *options, ats_err *err)
{
    char path[PATH_ROOM];
    ats_capture *capture = NULL;
    ats_code rc = ATS_OK;
    if (!locate(request, result->captures, path, sizeof path)) goto out;
    ATS_TRY(ats_capture_open(path, &capture, err));
    if (capture->n_samples > 0) rc = take_spans(arena, capture, options, err);
out:
    ats_capture_close(capture);
    return rc;
}

ats_code ats_page_make(ats_arena *arena, const ats_page_request *request, const char **out,
                       ats_err *err)
{
    ats_page_result result = {.n_cases = 0}, base = {.n_cases = 0};
    ats_page_options options = {.verdict = "finished", .bad = false};
    ats_code rc;
    ATS_TRY(ats_page_read(arena, request->result, &result, err));
    if (request->against != NULL) ATS_TRY(ats_page_read(arena, request->against, &base, err));
    ATS_TRY(read_spans(arena, request, &result, &options, err));
    rc = ats_page_text(arena, &result, request->against != NULL ? &base : NULL, &options, out, err);
out:
    return rc;
}
