#include "report/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "h5/attr.h"
#include "h5/chunks.h"
#include "h5/seal.h"
#include "report/merge_private.h"

/* Root attributes of one part, that say nothing about the whole. */
static const char *const of_one_part[] = {"part",         "part_count", "cases_ok", "cases_skipped",
                                          "cases_failed", "gates",      "complete"};

bool ats_merge_of_one_part(const char *name)
{
    for (size_t i = 0; i < sizeof of_one_part / sizeof of_one_part[0]; i++)
        if (strcmp(of_one_part[i], name) == 0) return true;
    return false;
}

static ats_code check_seal(const char *path, ats_err *err)
{
    bool whole = false;
    const char *why = "";
    ats_code rc = ats_h5_seal_check(path, &whole, &why, err);
    if (rc == ATS_OK && !whole)
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s: %s; delete it and run the suite again, which computes it alone", path,
                      why);
    return rc;
}

static ats_code read_numbers(const ats_h5_file *file, ats_merge_one *one, ats_err *err)
{
    ats_code rc = ATS_OK;
    if (!ats_h5_has_attr(file, "/", "part"))
        return ats_h5_fail(err, ATS_E_INPUT, file, "/",
                           "is a result, but no part of one: it has no attribute \"part\"");
    ATS_TRY(ats_h5_get_i64(file, "/", "part", &one->number, err));
    ATS_TRY(ats_h5_get_i64(file, "/", "part_count", &one->of, err));
    ATS_TRY(ats_h5_get_i64(file, "/", "cases_ok", &one->ok, err));
    ATS_TRY(ats_h5_get_i64(file, "/", "cases_skipped", &one->skipped, err));
    ATS_TRY(ats_h5_get_i64(file, "/", "cases_failed", &one->failed, err));
    if (one->of < 1 || one->number < 0 || one->number >= one->of)
        rc = ats_h5_fail(err, ATS_E_INPUT, file, "/", "says it is part %lld of %lld",
                         (long long)one->number, (long long)one->of);
out:
    return rc;
}

/* Every attribute that speaks of the whole must be the first part's. */
static ats_code same_run(const ats_merge *merge, const ats_h5_file *file, ats_err *err)
{
    ats_arena arena = {.blocks = NULL};
    const char *const *names = NULL;
    int64_t count = 0, shared = 0;
    ats_code rc;
    ATS_TRY(ats_h5_attr_names(file, "/", &arena, &names, &count, err));
    for (int64_t i = 0; i < count; i++) {
        const char *found = "", *want = NULL;
        if (ats_merge_of_one_part(names[i])) continue;
        ATS_TRY(ats_h5_attr_words(file, "/", names[i], &arena, &found, err));
        for (int64_t j = 0; j < merge->n_words; j++)
            if (strcmp(merge->word_names[j], names[i]) == 0) want = merge->words[j];
        shared += want != NULL;
        if (want != NULL && strcmp(want, found) == 0) continue;
        rc = ats_h5_fail(err, ATS_E_INPUT, file, "/",
                         "its %s is \"%s\", but \"%s\" in %s: these are parts of different runs, "
                         "which are never joined",
                         names[i], found, want != NULL ? want : "missing", merge->ones[0].path);
        goto out;
    }
    if (shared != merge->n_words)
        rc = ats_h5_fail(err, ATS_E_INPUT, file, "/",
                         "has fewer attributes than %s: these are parts of different runs",
                         merge->ones[0].path);
out:
    ats_arena_fini(&arena);
    return rc;
}

static ats_code keep_words(ats_merge *merge, const ats_h5_file *file, ats_err *err)
{
    const char *const *names = NULL;
    int64_t count = 0;
    ats_code rc;
    ATS_TRY(ats_h5_attr_names(file, "/", &merge->arena, &names, &count, err));
    ATS_TRY(ATS_NEW0(&merge->arena, count, &merge->words, err));
    ATS_TRY(ATS_NEW0(&merge->arena, count, &merge->word_names, err));
    for (int64_t i = 0; i < count; i++) {
        if (ats_merge_of_one_part(names[i])) continue;
        merge->word_names[merge->n_words] = names[i];
        ATS_TRY(ats_h5_attr_words(file, "/", names[i], &merge->arena, &merge->words[merge->n_words],
                                  err));
        merge->n_words++;
    }
out:
    return rc;
}

ats_code ats_merge_take(ats_merge *merge, int64_t i, ats_result_file **out, ats_err *err)
{
    ats_merge_one *one = &merge->ones[i];
    ats_code rc = ATS_OK;
    if (one->file == NULL) {
        rc = (one->known ? ats_result_open_again : ats_result_open)(one->path, &one->file, err);
        merge->n_open += rc == ATS_OK;
        one->known = rc == ATS_OK;
    }
    if (rc != ATS_OK) return rc;
    one->takers++;
    *out = one->file;
    return ATS_OK;
}

static void close_one(ats_merge *merge, ats_merge_one *one)
{
    merge->n_open -= one->file != NULL;
    ats_result_close(one->file);
    one->file = NULL;
}

void ats_merge_give_back(ats_merge *merge, int64_t i)
{
    enum { MOST = 2 }; /* HDF5 keeps about 3 MiB for each */
    ats_merge_one *one = &merge->ones[i];
    if (--one->takers == 0 && merge->n_open > MOST) close_one(merge, one);
}

static ats_code look(ats_merge *merge, int64_t i, const char *path, bool sealed, ats_err *err)
{
    ats_merge_one *one = &merge->ones[i];
    ats_result_file *file = NULL;
    ats_code rc = ATS_OK;
    one->path = path;
    if (!sealed) ATS_TRY(check_seal(path, err));
    ATS_TRY(ats_merge_take(merge, i, &file, err));
    ATS_TRY(read_numbers(&file->file, one, err));
    if (i == 0) ATS_TRY(keep_words(merge, &file->file, err));
    ATS_TRY(same_run(merge, &file->file, err));
    if (one->of != merge->ones[0].of)
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s: is one of %lld parts, but %s is one of %lld: these are parts of "
                      "different runs",
                      path, (long long)one->of, merge->ones[0].path, (long long)merge->ones[0].of);
out:
    if (file != NULL) ats_merge_give_back(merge, i);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const int64_t m = ((const ats_merge_one *)a)->number, n = ((const ats_merge_one *)b)->number;
    return (m > n) - (m < n);
}

/* The last bytes of both: equal seals are equal files. */
static bool same_seal(const char *a, const char *b)
{
    char x[ATS_H5_SEAL_BYTES], y[ATS_H5_SEAL_BYTES];
    FILE *one = fopen(a, "rbe"), *two = fopen(b, "rbe");
    const bool same = one != NULL && two != NULL && fseek(one, -(long)sizeof x, SEEK_END) == 0 &&
                      fseek(two, -(long)sizeof y, SEEK_END) == 0 &&
                      fread(x, sizeof x, 1, one) == 1 && fread(y, sizeof y, 1, two) == 1 &&
                      memcmp(x, y, sizeof x) == 0;
    if (one != NULL) fclose(one);
    if (two != NULL) fclose(two);
    return same;
}

static ats_code drop_copies(ats_merge *merge, ats_err *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < merge->count; i++) {
        ats_merge_one *one = &merge->ones[i];
        if (n > 0 && merge->ones[n - 1].number == one->number) {
            if (same_seal(merge->ones[n - 1].path, one->path)) {
                close_one(merge, one);
                continue;
            }
            return ats_fail(err, ATS_E_INPUT,
                            "%s and %s are both part %lld, with different bytes; keep the one you "
                            "trust",
                            merge->ones[n - 1].path, one->path, (long long)one->number);
        }
        merge->ones[n] = *one;
        if (n++ < i) one->file = NULL; /* moved */
    }
    merge->count = n;
    return ATS_OK;
}

/* "3, 5 to 9 and 12" */
static ats_code name_missing(const ats_merge *merge, ats_arena *arena, const char **out,
                             ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    const int64_t of = merge->ones[0].of;
    int64_t at = 0, runs = 0;
    for (int64_t n = 0; n < of && runs < 20; n++) {
        while (at < merge->count && merge->ones[at].number < n) at++;
        if (at < merge->count && merge->ones[at].number == n) continue;
        const int64_t stop = at < merge->count ? merge->ones[at].number : of;
        ats_text_add(&text, "%s%lld", runs++ > 0 ? ", " : "", (long long)n);
        if (stop - n > 1) ats_text_add(&text, " to %lld", (long long)stop - 1);
        n = stop - 1;
    }
    if (runs == 20) ats_text_add(&text, ", ...");
    return ats_text_done(&text, out);
}

static ats_code check_missing(ats_merge *merge, bool partial, ats_err *err)
{
    const int64_t of = merge->ones[0].of;
    merge->missing = of - merge->count;
    if (merge->missing == 0) return ATS_OK;
    ats_code rc = name_missing(merge, &merge->arena, &merge->missing_names, err);
    if (rc != ATS_OK || partial) return rc;
    return ats_fail(err, ATS_E_INPUT,
                    "%lld of %lld parts are missing: %s; give the folders of the other shards too, "
                    "run the shards that are not done, or say --partial for a result that is "
                    "marked as incomplete",
                    (long long)merge->missing, (long long)of, merge->missing_names);
}

static ats_code open_all(ats_merge *merge, const ats_merge_options *options, ats_err *err)
{
    ats_code rc;
    if (options->n_parts < 1)
        return ats_fail(err, ATS_E_INPUT, "there are no parts to join (files like 000.h5)");
    ATS_TRY(ATS_NEW0(&merge->arena, options->n_parts, &merge->ones, err));
    merge->count = options->n_parts;
    for (int64_t i = 0; i < options->n_parts; i++)
        ATS_TRY(look(merge, i, options->parts[i], options->sealed, err));
    qsort(merge->ones, (size_t)merge->count, sizeof *merge->ones, by_number);
    ATS_TRY(drop_copies(merge, err));
    ATS_TRY(check_missing(merge, options->partial, err));
    ATS_TRY(ATS_NEW(&merge->arena, merge->count, &merge->list, err));
    for (int64_t i = 0; i < merge->count; i++)
        merge->list[i] = (ats_merge_part){merge->ones[i].path, merge->ones[i].number};
out:
    return rc;
}

ats_code ats_merge_open(const ats_merge_options *options, ats_merge **out, ats_err *err)
{
    ats_merge *merge = calloc(1, sizeof *merge);
    if (merge == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory for the list of parts");
    ats_code rc = open_all(merge, options, err);
    if (rc == ATS_OK)
        *out = merge;
    else
        ats_merge_free(merge);
    return rc;
}

const ats_merge_part *ats_merge_parts(const ats_merge *merge, int64_t *count)
{
    *count = merge->count;
    return merge->list;
}

int64_t ats_merge_missing(const ats_merge *merge) { return merge->missing; }

void ats_merge_free(ats_merge *merge)
{
    if (merge == NULL) return;
    for (int64_t i = 0; merge->ones != NULL && i < merge->count; i++)
        close_one(merge, &merge->ones[i]);
    ats_arena_fini(&merge->arena);
    free(merge);
}
