#include "engine/page.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "capture/capture.h"
#include "engine/compare.h"
#include "report/page.h"

enum { PATH_ROOM = 4096 };

/* The first of the captures that the result names, beside it or here. Names are joined by blanks
 * and may hold some: the longest beginning that is a file. */
static bool locate(const ats_page_request *request, const char *names, char *path, size_t size)
{
    const char *slash = strrchr(request->result, '/');
    const int folder = slash != NULL ? (int)(slash - request->result) + 1 : 0;
    if (request->capture != NULL) {
        snprintf(path, size, "%s", request->capture);
        return true;
    }
    for (int length = (int)strlen(names); length > 0;) {
        snprintf(path, size, "%.*s%.*s", folder, request->result, length, names);
        if (access(path, R_OK) == 0) return true;
        snprintf(path, size, "%.*s", length, names);
        if (access(path, R_OK) == 0) return true;
        while (--length > 0 && names[length] != ' ') continue;
    }
    return false;
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
    rc = ats_capture_open(path, &capture, err);
    /* a file of that name that is none, such as the result itself: the page goes without spans */
    if (rc == ATS_E_INPUT && request->capture == NULL) rc = ATS_OK;
    if (rc != ATS_OK || capture == NULL) goto out;
    if (capture->n_samples > 0) rc = take_spans(arena, capture, options, err);
out:
    ats_capture_close(capture);
    return rc;
}

static const char *plain(const char *name)
{
    (void)name;
    return "";
}

static ats_code copy_member(ats_arena *arena, const json_t *object, const char *name,
                            const char **out, ats_err *err)
{
    const char *text = json_string_value(json_object_get(object, name));
    return ats_arena_strdup(arena, text != NULL ? text : "", out, err);
}

/* The verdicts that the run wrote into the result. */
static ats_code take_gates(ats_arena *arena, const json_t *list, ats_page_options *options,
                           ats_err *err)
{
    ats_page_gate *gates = NULL;
    int64_t n = 0, failed = 0;
    size_t i = 0;
    const json_t *entry = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, json_array_size(list), &gates, err));
    json_array_foreach(list, i, entry)
    {
        ATS_TRY(copy_member(arena, entry, "name", &gates[n].name, err));
        ATS_TRY(copy_member(arena, entry, "verdict", &gates[n].verdict, err));
        ATS_TRY(copy_member(arena, entry, "sentence", &gates[n].sentence, err));
        if (strcmp(gates[n].verdict, "not judged") == 0) continue;
        const bool passed = strcmp(gates[n].verdict, "passed") == 0;
        gates[n++].tone = passed ? "good" : "bad";
        failed += !passed;
    }
    options->gates = gates;
    options->n_gates = n;
    if (n > 0) options->tone = failed > 0 ? "bad" : "good";
    if (n > 0)
        rc = ats_arena_printf(arena, &options->verdict, err, "%lld of %lld gates failed",
                              (long long)failed, (long long)n);
out:
    return rc;
}

static ats_code read_gates(ats_arena *arena, ats_result_file *file, ats_page_options *options,
                           ats_err *err)
{
    char **texts = NULL;
    int64_t count = 0;
    json_t *list = NULL;
    ats_err ignored = {.code = ATS_OK};
    ats_code rc = ATS_OK;
    if (ats_result_texts(file, "gates", &texts, &count, &ignored) == ATS_OK && count == 1)
        list = json_loads(texts[0], 0, NULL);
    if (json_is_array(list)) rc = take_gates(arena, list, options, err);
    json_decref(list);
    ats_result_free_texts(texts, count);
    return rc;
}

/* The verdict of `compare`, its gates and its table. */
static ats_code compare(ats_arena *arena, const ats_page_request *request,
                        ats_result_file *const *files, ats_page_options *options, ats_err *err)
{
    ats_compare_options asked = {.base = request->against,
                                 .candidate = request->result,
                                 .base_file = files[1],
                                 .candidate_file = files[0],
                                 .noise_floor = -1};
    ats_compared compared = {.suite = NULL};
    ats_page_gate *gates = NULL;
    const char *text = NULL;
    ats_code rc;
    for (int k = 0; k < ATS_N_FINDING_KINDS; k++) {
        asked.allow[k] = request->allow[k];
        asked.n_allow[k] = request->n_allow[k];
    }
    ATS_TRY(ats_compare_run(NULL, &asked, &compared, err));
    const ats_comparison *c = compared.comparison;
    ATS_TRY(ATS_NEW0(arena, c->n_gates, &gates, err));
    for (int64_t g = 0; g < c->n_gates; g++) {
        const ats_compare_row *row = &c->rows[g];
        ATS_TRY(ats_arena_strdup(arena, row->name, &gates[g].name, err));
        ATS_TRY(ats_arena_strdup(arena, row->sentence, &gates[g].sentence, err));
        gates[g].verdict = ats_claim_name(row->claim);
        gates[g].tone = row->claim == ATS_CLAIM_REGRESSED      ? "bad"
                        : row->claim == ATS_CLAIM_INCONCLUSIVE ? "unsure"
                                                               : "good";
    }
    ATS_TRY(ats_compare_text(&compared.comparison->arena, c, plain, &text, err));
    ATS_TRY(ats_arena_strdup(arena, text, &options->comparison, err));
    ATS_TRY(ats_arena_printf(arena, &options->verdict, err, "%s: %s", c->verdict, c->sentence));
    options->tone = c->code == ATS_OK ? "good" : c->code == ATS_E_INCONCLUSIVE ? "unsure" : "bad";
    options->gates = gates;
    options->n_gates = c->n_gates;
out:
    ats_compared_close(&compared);
    return rc;
}

ats_code ats_page_make(ats_arena *arena, const ats_page_request *request, const char **out,
                       ats_err *err)
{
    ats_page_result result = {.n_cases = 0}, base = {.n_cases = 0};
    ats_page_options options = {.verdict = "no gate was judged", .tone = "unsure"};
    const bool pair = request->against != NULL;
    ats_result_file *files[2] = {NULL, NULL};
    ats_code rc;
    ATS_TRY(ats_result_open(request->result, &files[0], err));
    if (pair) ATS_TRY(ats_result_open(request->against, &files[1], err));
    ATS_TRY(ats_page_read(arena, files[0], request->result, &result, err));
    if (pair) ATS_TRY(ats_page_read(arena, files[1], request->against, &base, err));
    ATS_TRY(pair ? compare(arena, request, files, &options, err)
                 : read_gates(arena, files[0], &options, err));
    ATS_TRY(read_spans(arena, request, &result, &options, err));
    rc = ats_page_text(arena, &result, pair ? &base : NULL, &options, out, err);
out:
    ats_result_close(files[0]);
    ats_result_close(files[1]);
    return rc;
}
