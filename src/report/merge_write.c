/* The joined file: descriptions from the first part, numbers from all of them. */
#include <stdlib.h>
#include <string.h>

#include "h5/attr.h"
#include "h5/chunks.h"
#include "h5/scales.h"
#include "report/merge_private.h"

/* The axes along which parts are joined. */
enum { JOIN_CASE, JOIN_SAMPLE, JOIN_CURVE, N_JOINS, JOIN_NONE = -1 };
static const char *const join_names[N_JOINS] = {"case", "sample", "curve"};

/* Rows of a variable that is stored whole, not in chunks. */
typedef struct piece {
    const char *const *texts; /* [count] */
    void *numbers;            /* [count] of the column's type */
    int64_t count;
} piece;

/* One dataset of the parts. */
typedef struct column {
    const char *name;
    ats_h5_dataset like, out;
    int join;     /* axis 0 */
    int index_of; /* the numbers are indices along this axis; JOIN_NONE: they are not */
    bool scale;   /* of an axis */
    bool counts;  /* the scale of an axis that is its indices */
    piece common; /* what every part holds, where nothing is joined */
} column;

typedef struct writer {
    ats_merge *merge;
    ats_arena arena, scratch; /* scratch: of one column */
    ats_result_file *first;   /* part that descriptions are taken from */
    ats_h5_file out;
    int64_t n_columns;
    column *columns;
    int64_t *start[N_JOINS]; /* [parts + 1] where each part's rows begin */
} writer;

static int join_named(const char *name)
{
    for (int j = 0; j < N_JOINS; j++)
        if (strcmp(join_names[j], name) == 0) return j;
    return JOIN_NONE;
}

static ats_code read_piece(const ats_h5_dataset *dataset, ats_arena *arena, piece *out,
                           ats_err *err)
{
    ats_code rc;
    out->count = dataset->count;
    if (dataset->type == ATS_H5_TEXT) return ats_h5_read_texts(dataset, arena, &out->texts, err);
    ATS_TRY(ats_h5_expect_stored(dataset, true, err));
    ATS_TRY(ats_arena_alloc(arena, out->count, dataset->size, &out->numbers, err));
    rc = ats_h5_read(dataset, NULL, NULL, dataset->type, out->numbers, err);
out:
    return rc;
}

static ats_code make_column(writer *w, const char *name, column *c, ats_err *err)
{
    const ats_h5_file *file = &w->first->file;
    char axis[24] = "";
    const char *of = "";
    ats_code rc;
    *c = (column){.name = name, .join = JOIN_NONE, .index_of = JOIN_NONE};
    ATS_TRY(ats_h5_dataset_open(file, name, &c->like, err));
    c->scale = ats_h5_is_scale(&c->like);
    if (c->scale)
        c->join = join_named(name);
    else if (c->like.rank > 0) {
        ATS_TRY(ats_h5_scale_name(&c->like, 0, axis, sizeof axis, err));
        c->join = join_named(axis);
    }
    c->counts = c->scale && c->join != JOIN_NONE && c->like.type == ATS_H5_I64;
    if (ats_h5_has_attr(file, name, "index_of")) {
        ATS_TRY(ats_h5_attr_words(file, name, "index_of", &w->arena, &of, err));
        c->index_of = join_named(of);
    }
    const bool known = c->like.type != ATS_H5_OTHER && c->like.type != ATS_H5_BOOL;
    if (!known || (c->like.chunked && (c->join == JOIN_NONE || c->like.type == ATS_H5_TEXT)) ||
        (!c->like.chunked && c->like.rank > 1) ||
        (c->index_of != JOIN_NONE && c->like.type != ATS_H5_I64))
        ATS_TRY(ats_h5_fail(err, ATS_E_UNSUPPORTED, file, name, "is nothing that can be joined"));
    if (!c->like.chunked && c->join == JOIN_NONE)
        rc = read_piece(&c->like, &w->arena, &c->common, err);
out:
    return rc;
}

static ats_code make_columns(writer *w, ats_err *err)
{
    const char *const *names = NULL;
    ats_code rc;
    for (int j = 0; j < N_JOINS; j++)
        ATS_TRY(ATS_NEW0(&w->arena, w->merge->count + 1, &w->start[j], err));
    ATS_TRY(ats_merge_take(w->merge, 0, &w->first, err));
    ATS_TRY(ats_h5_datasets(&w->first->file, &w->arena, &names, &w->n_columns, err));
    ATS_TRY(ATS_NEW0(&w->arena, w->n_columns, &w->columns, err));
    for (int64_t i = 0; i < w->n_columns; i++)
        ATS_TRY(make_column(w, names[i], &w->columns[i], err));
out:
    return rc;
}

/* The same variable: type, rank and every extent but that of the joined axis. */
static ats_code check_like(const column *c, const ats_h5_dataset *dataset, ats_err *err)
{
    const ats_h5_dataset *like = &c->like;
    bool same = dataset->type == like->type && dataset->rank == like->rank &&
                dataset->chunked == like->chunked && dataset->size == like->size;
    for (int i = 0; same && i < like->rank; i++)
        same = (i == 0 && c->join != JOIN_NONE) || dataset->extent[i] == like->extent[i];
    if (same) return ATS_OK;
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "is not shaped as in %s: these are parts of different runs",
                       like->file->path);
}

static bool same_piece(const column *c, const piece *a, const piece *b)
{
    if (a->count != b->count) return false;
    if (c->like.type != ATS_H5_TEXT)
        return a->count == 0 ||
               memcmp(a->numbers, b->numbers, (size_t)a->count * c->like.size) == 0;
    for (int64_t i = 0; i < a->count; i++)
        if (strcmp(a->texts[i], b->texts[i]) != 0) return false;
    return true;
}

/* What is not joined must be the first part's. The suite's text may have other words: its hash is
 * among the root's attributes. */
static ats_code compare_piece(writer *w, const column *c, const ats_h5_dataset *dataset,
                              ats_err *err)
{
    piece found = {.count = 0};
    if (strcmp(c->name, "suite") == 0) return ATS_OK;
    const ats_code rc = read_piece(dataset, &w->scratch, &found, err);
    if (rc != ATS_OK || same_piece(c, &c->common, &found)) return rc;
    return ats_h5_fail(err, ATS_E_INPUT, dataset->file, dataset->name,
                       "is not the same as in %s: these are parts of different runs",
                       w->first->file.path);
}

/* Does the length of this axis's scale say where parts begin? */
static bool says_rows(const column *c) { return c->counts || (c->scale && c->join == JOIN_SAMPLE); }

/* Its rows are as many as those of the axis; the scale of one that is joined says how many. */
static ats_code check_rows(writer *w, const column *c, const ats_h5_dataset *dataset, int64_t part,
                           ats_err *err)
{
    ats_code rc = check_like(c, dataset, err);
    if (rc != ATS_OK || c->join == JOIN_NONE) return rc;
    int64_t *start = w->start[c->join];
    const int64_t stop = start[part] + dataset->extent[0];
    if (says_rows(c))
        start[part + 1] = stop;
    else if (start[part + 1] != stop)
        rc = ats_h5_fail(err, ATS_E_INPUT, dataset->file, c->name,
                         "has %lld rows, the axis %s has %lld", (long long)dataset->extent[0],
                         join_names[c->join], (long long)(start[part + 1] - start[part]));
    return rc;
}

static ats_code count_rows(writer *w, const column *c, const ats_h5_file *file, int64_t part,
                           ats_err *err)
{
    ats_h5_dataset dataset = {.id = 0};
    ats_code rc;
    ATS_TRY(ats_h5_dataset_open(file, c->name, &dataset, err));
    rc = check_rows(w, c, &dataset, part, err);
out:
    ats_h5_dataset_close(&dataset);
    return rc;
}

/* Where the rows of a part begin in the whole. */
static ats_code count_part(writer *w, int64_t part, ats_err *err)
{
    ats_result_file *file = NULL;
    const char *const *names = NULL;
    int64_t count = 0;
    ats_arena arena = {.blocks = NULL};
    ats_code rc;
    ATS_TRY(ats_merge_take(w->merge, part, &file, err));
    ATS_TRY(ats_h5_datasets(&file->file, &arena, &names, &count, err));
    if (count != w->n_columns)
        ATS_TRY(ats_h5_fail(err, ATS_E_INPUT, &file->file, NULL,
                            "holds %lld variables, but %s holds %lld: these are parts of different "
                            "runs",
                            (long long)count, w->first->file.path, (long long)w->n_columns));
    for (int64_t i = 0; i < w->n_columns; i++)
        if (says_rows(&w->columns[i]))
            ATS_TRY(count_rows(w, &w->columns[i], &file->file, part, err));
out:
    if (file != NULL) ats_merge_give_back(w->merge, part);
    ats_arena_fini(&arena);
    return rc;
}

static int64_t rows_of(const writer *w, const column *c)
{
    return c->join == JOIN_NONE ? c->like.extent[0] : w->start[c->join][w->merge->count];
}

/* An index of a part becomes one of the whole; -1 stays. */
static void move_indices(const writer *w, const column *c, int64_t part, const piece *p)
{
    int64_t *values = p->numbers;
    for (int64_t i = 0; i < p->count; i++)
        if (values[i] >= 0) values[i] += w->start[c->index_of][part];
}

static ats_code put_counts(writer *w, const column *c, ats_err *err)
{
    const int64_t n = rows_of(w, c);
    int64_t *all = NULL;
    ats_code rc = ATS_NEW(&w->scratch, n, &all, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < n; i++) all[i] = i;
    return ats_h5_write(&c->out, NULL, NULL, ATS_H5_I64, all, err);
}

/* The variable, with what is the same in all parts; the others' rows follow part by part. */
static ats_code make_out(writer *w, column *c, ats_err *err)
{
    const int64_t n = c->like.rank == 0 ? -1 : rows_of(w, c);
    const bool joined = c->join != JOIN_NONE;
    ats_code rc;
    if (c->like.type == ATS_H5_TEXT) {
        const char *const *texts = joined ? NULL : c->common.texts;
        return ats_h5_write_texts(&w->out, c->name, texts, n, &c->out, err);
    }
    ATS_TRY(ats_h5_dataset_like(&c->like, &w->out, n, &c->out, err));
    if (c->counts)
        rc = put_counts(w, c, err);
    else if (!joined)
        rc = ats_h5_write(&c->out, NULL, NULL, c->like.type, c->common.numbers, err);
out:
    ats_arena_reset(&w->scratch);
    return rc;
}

static ats_code put_piece(writer *w, const column *c, const ats_h5_dataset *dataset, int64_t part,
                          ats_err *err)
{
    piece p = {.count = 0};
    const int64_t start = w->start[c->join][part];
    ats_code rc = read_piece(dataset, &w->scratch, &p, err);
    if (rc != ATS_OK || p.count == 0) return rc;
    if (c->like.type == ATS_H5_TEXT) return ats_h5_put_texts(&c->out, start, p.texts, p.count, err);
    if (c->index_of != JOIN_NONE) move_indices(w, c, part, &p);
    return ats_h5_write(&c->out, &start, &p.count, c->like.type, p.numbers, err);
}

static const column *scale_named(const writer *w, const char *name)
{
    for (int64_t i = 0; i < w->n_columns; i++)
        if (strcmp(w->columns[i].name, name) == 0) return &w->columns[i];
    return NULL;
}

static ats_code attach_scales(writer *w, const column *c, ats_err *err)
{
    const ats_h5_dataset *scales[ATS_H5_MAX_RANK];
    for (int i = 0; i < c->like.rank; i++) {
        char axis[24] = "";
        const ats_code rc = ats_h5_scale_name(&c->like, i, axis, sizeof axis, err);
        if (rc != ATS_OK) return rc;
        const column *scale = scale_named(w, axis);
        if (scale == NULL || !scale->scale || scale->out.id <= 0)
            return ats_h5_fail(err, ATS_E_INPUT, &w->first->file, c->name,
                               "axis %d has no scale that was made before it", i);
        scales[i] = &scale->out;
    }
    return ats_h5_scales_attach(&c->out, scales, err);
}

static ats_code put_column(writer *w, column *c, ats_err *err)
{
    ats_code rc;
    ATS_TRY(make_out(w, c, err));
    if (c->scale)
        ATS_TRY(ats_h5_scale_make(&c->out, c->name, err));
    else if (c->like.rank > 0)
        ATS_TRY(attach_scales(w, c, err));
    rc = ats_h5_attrs_like(&c->like, &c->out, err);
    if (rc == ATS_OK && c->join == JOIN_NONE && !c->scale) ats_h5_dataset_close(&c->out);
out:
    return rc;
}

static ats_code put_head(writer *w, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t i = 0; i < w->merge->n_words && rc == ATS_OK; i++)
        rc = ats_h5_root_attr_copy(&w->first->file, &w->out, w->merge->word_names[i], err);
    return rc;
}

static ats_code put_chunks(const writer *w, const column *c, const ats_h5_dataset *dataset,
                           int64_t part, ats_err *err)
{
    const int64_t offset[ATS_H5_MAX_RANK] = {w->start[c->join][part]};
    if (offset[0] % dataset->chunk[0] != 0)
        return ats_h5_fail(err, ATS_E_INPUT, dataset->file, c->name,
                           "its chunks of %lld rows do not begin where this part does (row %lld)",
                           (long long)dataset->chunk[0], (long long)offset[0]);
    return ats_h5_copy_chunks(dataset, &c->out, offset, err);
}

/* One variable of a part into its rows of the whole. */
static ats_code put_rows(writer *w, const column *c, const ats_h5_file *file, int64_t part,
                         ats_err *err)
{
    ats_h5_dataset dataset = {.id = 0};
    ats_code rc;
    ATS_TRY(ats_h5_dataset_open(file, c->name, &dataset, err));
    ATS_TRY(check_rows(w, c, &dataset, part, err));
    if (!c->like.chunked && c->scale != ats_h5_is_scale(&dataset))
        rc = ats_h5_fail(err, ATS_E_INPUT, file, c->name,
                         "is the scale of an axis in one part and not in %s", w->first->file.path);
    else if (c->like.chunked)
        rc = put_chunks(w, c, &dataset, part, err);
    else if (c->join == JOIN_NONE)
        rc = compare_piece(w, c, &dataset, err);
    else
        rc = put_piece(w, c, &dataset, part, err);
out:
    ats_arena_reset(&w->scratch);
    ats_h5_dataset_close(&dataset);
    return rc;
}

static ats_code put_part(writer *w, int64_t part, ats_err *err)
{
    ats_result_file *file = NULL;
    ats_code rc = ats_merge_take(w->merge, part, &file, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < w->n_columns && rc == ATS_OK; i++) {
        const column *c = &w->columns[i];
        if (!c->counts && (part > 0 || c->join != JOIN_NONE))
            rc = put_rows(w, c, &file->file, part, err);
    }
    ats_merge_give_back(w->merge, part);
    return rc;
}

static ats_code put_tail(writer *w, const ats_attribute *attributes, int64_t count, ats_err *err)
{
    const ats_merge *merge = w->merge;
    int64_t ok = 0, skipped = 0, failed = 0;
    ats_code rc = ATS_OK;
    for (int64_t p = 0; p < merge->count; p++) {
        ok += merge->ones[p].ok;
        skipped += merge->ones[p].skipped;
        failed += merge->ones[p].failed;
    }
    ATS_TRY(ats_h5_put_i64(&w->out, "/", "cases_ok", ok, err));
    ATS_TRY(ats_h5_put_i64(&w->out, "/", "cases_skipped", skipped, err));
    ATS_TRY(ats_h5_put_i64(&w->out, "/", "cases_failed", failed, err));
    for (int64_t i = 0; i < count; i++) {
        const ats_attribute *a = &attributes[i];
        if (a->type == ATS_TYPE_TEXT)
            ATS_TRY(ats_h5_put_text(&w->out, "/", a->name, a->text, err));
        else if (a->type == ATS_TYPE_F64)
            ATS_TRY(ats_h5_put_f64(&w->out, "/", a->name, a->f64, err));
        else
            ATS_TRY(ats_h5_put_i64(&w->out, "/", a->name, a->i64, err));
    }
    if (merge->missing > 0) {
        ATS_TRY(ats_h5_put_i64(&w->out, "/", "partial", 1, err));
        ATS_TRY(ats_h5_put_text(&w->out, "/", "missing_parts", merge->missing_names, err));
    }
    rc = ats_h5_put_i64(&w->out, "/", "complete", 1, err);
out:
    return rc;
}

static void close_columns(writer *w)
{
    for (int64_t i = 0; i < w->n_columns && w->columns != NULL; i++) {
        ats_h5_dataset_close(&w->columns[i].like);
        ats_h5_dataset_close(&w->columns[i].out);
    }
}

ats_code ats_merge_write(ats_merge *merge, const char *path, const ats_attribute *attributes,
                         int64_t n_attributes, ats_err *err)
{
    writer w = {.merge = merge};
    ats_code rc;
    ATS_TRY(make_columns(&w, err));
    for (int64_t p = 0; p < merge->count; p++) ATS_TRY(count_part(&w, p, err));
    ATS_TRY(ats_h5_create(path, &w.out, err));
    ATS_TRY(put_head(&w, err));
    for (int64_t i = 0; i < w.n_columns; i++) ATS_TRY(put_column(&w, &w.columns[i], err));
    for (int64_t p = 0; p < merge->count; p++) ATS_TRY(put_part(&w, p, err));
    ATS_TRY(put_tail(&w, attributes, n_attributes, err));
    close_columns(&w);
    w.n_columns = 0;
    rc = ats_h5_commit(&w.out, err);
out:
    close_columns(&w);
    if (w.first != NULL) ats_merge_give_back(merge, 0);
    ats_h5_close(&w.out);
    ats_arena_fini(&w.arena);
    ats_arena_fini(&w.scratch);
    return rc;
}
