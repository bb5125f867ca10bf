/* A run as its parts: which are there already, which are computed now, and their joining. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "engine/gates.h"
#include "engine/gc.h"
#include "engine/interrupt.h"
#include "engine/join.h"
#include "engine/run_private.h"
#include "h5/file.h"
#include "report/part.h"

typedef struct parts_run {
    const ats_plan *plan;
    const ats_run_options *options;
    ats_outcome *outcome;
    ats_arena arena;
    const char *folder;
    ats_lock lock;
    ats_attribute *identity; /* [n_identity], then the part's number and count */
    int64_t n_identity;
    const char **paths;   /* [n_samples] */
    uint8_t *mine, *done; /* [n_samples] */
    int64_t n_mine, n_kept, n_made;
    ats_err first_failure; /* of a part without one good case */
    ats_run_common common;
} parts_run;

static int64_t n_samples(const parts_run *r) { return r->plan->selection.n_samples; }

static ats_code prepare(parts_run *r, ats_err *err)
{
    const int64_t n = n_samples(r);
    ats_attribute *list = NULL;
    ats_code rc;
    ATS_TRY(ats_attributes_make(r->plan, &r->arena, &list, &r->n_identity, err));
    ATS_TRY(ATS_NEW(&r->arena, r->n_identity + 2, &r->identity, err));
    memcpy(r->identity, list, (size_t)r->n_identity * sizeof *list);
    ATS_TRY(ats_parts_folder(&r->arena, r->options->path, &r->folder, err));
    ATS_TRY(ATS_NEW(&r->arena, n, &r->paths, err));
    ATS_TRY(ATS_NEW0(&r->arena, n, &r->mine, err));
    ATS_TRY(ATS_NEW0(&r->arena, n, &r->done, err));
    for (int64_t s = 0; s < n; s++)
        ATS_TRY(ats_part_path(&r->arena, r->folder, s, &r->paths[s], err));
    ATS_TRY(ats_shard_split(r->plan, &r->options->shard, &r->arena, r->mine, err));
    for (int64_t s = 0; s < n; s++) r->n_mine += r->mine[s];
out:
    return rc;
}

/* Takes what a finished result holds, instead of running. */
static ats_code read_finished(parts_run *r, ats_err *err)
{
    ats_result_file *file = NULL;
    ats_code rc;
    ATS_TRY(ats_result_open(r->options->path, &file, err));
    ATS_TRY(ats_outcome_make(r->plan, r->outcome, err));
    ATS_TRY(ats_outcome_take(r->plan, file, 0, n_samples(r), r->outcome, err));
    ATS_TRY(ats_outcome_settle(r->plan, r->outcome, err));
    r->outcome->finished_before = r->outcome->whole = true;
out:
    ats_result_close(file);
    return rc;
}

/* Is the result there already? Of another run, or nothing that a run wrote: refused. */
static ats_code look_at_result(parts_run *r, bool *finished, ats_err *err)
{
    const char *path = r->options->path, *why = "";
    ats_part_state state;
    *finished = false;
    ats_code rc = ats_h5_target_check(path, err);
    if (rc != ATS_OK) return rc;
    rc = ats_result_check(&r->arena, path, r->identity, r->n_identity, &state, &why, err);
    if (rc != ATS_OK || state == ATS_PART_ABSENT || r->options->force) return rc;
    if (state == ATS_PART_OTHER)
        return ats_fail(err, ATS_E_INPUT,
                        "%s is the result of another run: %s; nothing was overwritten: name "
                        "another --output, or say --force to replace it",
                        path, why);
    if (state == ATS_PART_DAMAGED)
        return ats_fail(err, ATS_E_INPUT,
                        "%s; it is in the way: move it away, name another --output, or say --force "
                        "to replace it",
                        why);
    *finished = state == ATS_PART_WHOLE;
    return ATS_OK;
}

static ats_code make_folder(const parts_run *r, ats_err *err)
{
    const bool made = mkdir(r->folder, 0777) == 0;
    if (!made && errno != EEXIST)
        return ats_fail(err, ATS_E_IO, "%s: cannot be written (as %s): %s%s", r->options->path,
                        r->folder, strerror(errno),
                        errno == ENOENT ? "; make that folder first, or name another file" : "");
    return made ? ats_h5_sync_folder(r->folder, err) : ATS_OK;
}

static ats_code take_lock(parts_run *r, ats_err *err)
{
    const ats_shard *shard = &r->options->shard;
    char name[64] = "run.lock", friends[64] = "", purpose[200];
    snprintf(purpose, sizeof purpose, "runs suite %s", r->plan->suite->name);
    if (shard->count > 0) {
        snprintf(name, sizeof name, "shard-%lld-of-%lld.lock", (long long)shard->index + 1,
                 (long long)shard->count);
        snprintf(friends, sizeof friends, "-of-%lld.lock", (long long)shard->count);
        snprintf(purpose, sizeof purpose, "runs shard %lld/%lld of suite %s",
                 (long long)shard->index + 1, (long long)shard->count, r->plan->suite->name);
    }
    const char *job = r->options->job != NULL ? r->options->job : "";
    return ats_lock_take(r->folder, name, friends[0] != '\0' ? friends : NULL, purpose, job,
                         &r->lock, err);
}

static ats_code look_at_part(parts_run *r, int64_t s, ats_err *err)
{
    const ats_attribute own[] = {
        {.name = "part", .type = ATS_TYPE_I64, .i64 = s},
        {.name = "part_count", .type = ATS_TYPE_I64, .i64 = n_samples(r)},
    };
    const char *why = "";
    ats_part_state state;
    memcpy(r->identity + r->n_identity, own, sizeof own);
    ats_code rc =
        ats_part_check(&r->arena, r->paths[s], r->identity, r->n_identity + 2, &state, &why, err);
    if (rc != ATS_OK) return rc;
    if (state == ATS_PART_OTHER && !r->options->force)
        return ats_fail(err, ATS_E_INPUT,
                        "%s is a part of another run: %s; nothing was overwritten: name another "
                        "--output, or say --force to delete the parts in %s",
                        r->paths[s], why, r->folder);
    if (state == ATS_PART_DAMAGED) ats_warn("%s %s; it is computed again", r->paths[s], why);
    r->done[s] = state == ATS_PART_WHOLE;
    r->n_kept += r->done[s];
    if (state == ATS_PART_ABSENT || r->done[s]) return ATS_OK;
    if (unlink(r->paths[s]) != 0 && errno != ENOENT)
        return ats_fail(err, ATS_E_IO, "%s: cannot be removed: %s", r->paths[s], strerror(errno));
    return ATS_OK;
}

static ats_code look_at_parts(parts_run *r, ats_err *err)
{
    ats_code rc = ATS_OK;
    for (int64_t s = 0; s < n_samples(r) && rc == ATS_OK; s++)
        if (r->mine[s]) rc = look_at_part(r, s, err);
    if (rc == ATS_OK && r->n_kept > 0)
        ats_info("%lld of %lld samples are in %s already", (long long)r->n_kept,
                 (long long)r->n_mine, r->folder);
    return rc;
}

/* Time, counts and the first failure; the numbers are read back from the part. */
static void note_part(parts_run *r, ats_outcome *part, const ats_err *failure)
{
    ats_outcome *all = r->outcome;
    all->read += part->read;
    all->build += part->build;
    all->evaluate += part->evaluate;
    all->measure += part->measure;
    all->write += part->write;
    all->account.problems += part->account.problems;
    all->account.variants += part->account.variants;
    all->account.blocks += part->account.blocks;
    ats_share_sum_add(&part->share, 1, &all->share);
    if (failure->code != ATS_OK && r->first_failure.code == ATS_OK) r->first_failure = *failure;
}

/* Waits for the part before, and keeps it. */
static ats_code end_part(parts_run *r, ats_part_run **before, int64_t s, ats_err *err)
{
    ats_outcome part = {.n_cases = 0};
    ats_err failure = {.code = ATS_OK};
    if (*before == NULL) return ATS_OK;
    const ats_code rc = ats_part_run_end(*before, &part, &failure, err);
    if (rc == ATS_OK) {
        note_part(r, &part, &failure);
        r->done[s] = 1;
        r->n_made++;
    }
    ats_outcome_fini(&part);
    ats_part_run_free(*before);
    *before = NULL;
    return rc;
}

static ats_code begin_part(parts_run *r, int64_t s, ats_part_run **out, ats_err *err)
{
    const ats_plan one = ats_plan_sample(r->plan, s);
    if (ats_interrupt_asked()) return ats_fail(err, ATS_E_INTERRUPTED, "interrupted");
    const ats_code rc = ats_lock_check(&r->lock, err);
    return rc == ATS_OK ? ats_part_run_begin(&one, r->paths[s], &r->common, out, err) : rc;
}

/* A part is evaluated while the one before is still being written. */
static ats_code run_samples(parts_run *r, ats_err *err)
{
    const int64_t each = r->plan->suite->n_variants * r->plan->selection.n_layers;
    ats_part_run *before = NULL, *now = NULL;
    int64_t last = -1;
    ats_code rc = ATS_OK;
    for (int64_t s = 0; s < n_samples(r) && rc == ATS_OK; s++) {
        if (!r->mine[s] || r->done[s]) continue;
        rc = begin_part(r, s, &now, err);
        ats_err other = {.code = ATS_OK};
        const ats_code ended = end_part(r, &before, last, &other);
        if (rc == ATS_OK && ended != ATS_OK) *err = other;
        if (rc == ATS_OK) rc = ended;
        before = now;
        now = NULL;
        last = s;
        r->common.done += each;
    }
    if (rc == ATS_OK) rc = end_part(r, &before, last, err);
    ats_part_run_free(before);
    return rc;
}

static ats_code run_missing(parts_run *r, ats_err *err)
{
    ats_code rc;
    for (int64_t s = 0; s < n_samples(r); s++) r->common.total += r->mine[s] && !r->done[s];
    if (r->common.total > 0) {
        r->common.total *= r->plan->suite->n_variants * r->plan->selection.n_layers;
        ATS_TRY(ats_run_common_init(&r->common, r->plan, err));
        ATS_TRY(run_samples(r, err));
    }
    rc = ats_interrupt_asked() ? ats_fail(err, ATS_E_INTERRUPTED, "interrupted") : ATS_OK;
out:
    if (r->common.behind != NULL) r->outcome->behind = ats_behind_seconds(r->common.behind);
    ats_run_common_fini(&r->common);
    return rc;
}

/* Nothing succeeded: the first reason is the run's error. */
static ats_code refuse_empty(const parts_run *r, ats_err *err)
{
    if (r->outcome->n_ok > 0 || r->outcome->n_failed == 0) return ATS_OK;
    if (r->first_failure.code != ATS_OK) {
        *err = r->first_failure;
        return err->code;
    }
    for (int64_t c = 0; c < r->outcome->n_cases; c++)
        if (r->outcome->cases[c].status == ATS_CASE_FAILED)
            return ats_fail(err, ATS_E_INPUT, "every case failed; the first one: %s",
                            r->outcome->cases[c].message);
    return ATS_OK;
}

static ats_code clear_parts(parts_run *r, ats_err *err)
{
    int64_t bytes = 0;
    ats_code rc = ats_parts_remove(r->folder, false, &bytes, err);
    ats_lock_drop(&r->lock);
    ats_lock_sweep(r->folder);
    rmdir(r->folder);
    return rc;
}

static ats_code join(parts_run *r, ats_err *err)
{
    const ats_merge_options options = {.n_parts = n_samples(r), .parts = r->paths, .sealed = true};
    ats_merge *merge = NULL;
    ats_code rc;
    const double start = ats_clock();
    ATS_TRY(ats_merge_open(&options, &merge, err));
    ATS_TRY(ats_outcome_of_parts(r->plan, merge, r->outcome, err));
    rc = refuse_empty(r, err);
    if (rc != ATS_OK) { /* parts that hold nothing would only be in the way */
        ats_err ignored;
        if (clear_parts(r, &ignored) != ATS_OK) ats_warn("%s", ignored.text);
        goto out;
    }
    ATS_TRY(ats_lock_check(&r->lock, err));
    ATS_TRY(ats_merge_judged(&r->arena, r->plan, r->outcome, merge, r->options->path, err));
    r->outcome->whole = true;
    rc = clear_parts(r, err);
out:
    r->common.account.join = ats_clock() - start;
    r->outcome->write += r->common.account.join;
    ats_merge_free(merge);
    return rc;
}

/* A run that died after its result got its name left parts that nobody needs. */
static void clear_left_over(parts_run *r)
{
    ats_gc_folder *list = NULL;
    int64_t n = 0;
    ats_err unsaid;
    if (access(r->folder, F_OK) == 0 &&
        ats_gc(&r->arena, r->folder, (double)INFINITY, true, &list, &n, &unsaid) != ATS_OK)
        ats_verbose("%s", unsaid.text);
}

static ats_code run_all(parts_run *r, ats_err *err)
{
    bool finished = false;
    ats_code rc;
    ATS_TRY(prepare(r, err));
    ATS_TRY(look_at_result(r, &finished, err));
    if (!finished) {
        ATS_TRY(make_folder(r, err));
        ATS_TRY(take_lock(r, err));
        ATS_TRY(look_at_result(r, &finished, err)); /* another process may just have ended */
    }
    if (finished) {
        ats_lock_drop(&r->lock);
        clear_left_over(r);
        rc = read_finished(r, err);
        goto out;
    }
    ATS_TRY(look_at_parts(r, err));
    ATS_TRY(run_missing(r, err));
    if (r->options->shard.count == 0) rc = join(r, err);
out:
    return rc;
}

/* After a failure: what is kept, and how it goes on. */
static ats_code say_kept(const parts_run *r, ats_code rc, ats_err *err)
{
    const int64_t kept = r->n_kept + r->n_made;
    char words[sizeof err->text];
    if (rc != ATS_E_INTERRUPTED && rc != ATS_E_IO && rc != ATS_E_MEMORY && rc != ATS_E_DEVICE)
        return rc;
    if (rc == ATS_E_INTERRUPTED && kept == 0)
        return ats_fail(err, rc, "interrupted; nothing was written");
    if (kept == 0) return rc;
    snprintf(words, sizeof words, "%.3500s", rc == ATS_E_INTERRUPTED ? "interrupted" : err->text);
    return ats_fail(err, rc,
                    "%s; %lld of %lld samples are kept in %s: run the same command again to "
                    "continue",
                    words, (long long)kept, (long long)r->n_mine, r->folder);
}

ats_code ats_run_with(const ats_plan *plan, const ats_run_options *options, ats_outcome *out,
                      ats_err *err)
{
    if (plan->detail_undecided)
        return ats_fail(err, ATS_E_SUITE,
                        "%s: the result would hold %.1f GiB with every probe, over the limit of 2 "
                        "GiB; decide by `output: {detail: head}` (%.1f GiB, means over probes) or "
                        "`output: {detail: probe}` in the suite, or --set output.detail=head",
                        plan->suite->path, (double)plan->bytes_probe / 1073741824.0,
                        (double)plan->bytes_head / 1073741824.0);
    ats_outcome outcome = {.n_cases = 0};
    parts_run r = {.plan = plan,
                   .options = options,
                   .outcome = &outcome,
                   .common.io = PTHREAD_MUTEX_INITIALIZER};
    const double t = ats_clock();
    ats_interrupt_watch(options->grace);
    ats_code rc = run_all(&r, err);
    ats_interrupt_unwatch();
    ats_progress(0, 0, "", "");
    if (rc != ATS_OK) rc = say_kept(&r, rc, err);
    ats_lock_drop(&r.lock);
    if (r.folder != NULL) rmdir(r.folder); /* stays unless it is empty */
    r.common.account.n_mine = r.n_mine;
    r.common.account.n_kept = r.n_kept;
    if (options->account != NULL) *options->account = r.common.account;
    outcome.n_mine = r.n_mine;
    outcome.n_kept = r.n_kept;
    outcome.total = ats_clock() - t;
    ats_arena_fini(&r.arena);
    if (rc == ATS_OK)
        *out = outcome;
    else
        ats_outcome_fini(&outcome);
    return rc;
}

ats_code ats_run(const ats_plan *plan, const char *path, ats_outcome *out, ats_err *err)
{
    const ats_run_options options = {.path = path};
    return ats_run_with(plan, &options, out, err);
}
