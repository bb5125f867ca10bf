#include "engine/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 1000000 };

static bool whole(const char *text, int64_t *out)
{
    char *end = NULL;
    if (text == NULL || text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > MAX_SHARDS * 1000LL) return false;
    *out = value;
    return true;
}

static ats_code parse_pair(const char *text, int64_t count, ats_shard *out, ats_err *err)
{
    const char *slash = strchr(text, '/');
    char head[24] = "";
    int64_t i = 0, n = 0;
    if (slash != NULL && slash - text < (long)sizeof head)
        snprintf(head, sizeof head, "%.*s", (int)(slash - text), text);
    if (slash == NULL || !whole(head, &i) || !whole(slash + 1, &n) || n < 1 || n > MAX_SHARDS)
        return ats_fail(err, ATS_E_USAGE,
                        "--shard is \"%s\", should be I/N like 2/8 (the second of eight), or auto",
                        text);
    if (i < 1 || i > n)
        return ats_fail(err, ATS_E_USAGE, "--shard %s: shards count from 1/%lld to %lld/%lld", text,
                        (long long)n, (long long)n, (long long)n);
    if (count > 0 && count != n)
        return ats_fail(err, ATS_E_USAGE, "--shard %s says %lld shards, --shards %lld", text,
                        (long long)n, (long long)count);
    *out = (ats_shard){i - 1, n, "--shard"};
    return ATS_OK;
}

static ats_code bad_variable(const char *name, const char *value, const char *want, ats_err *err)
{
    return ats_fail(err, ATS_E_USAGE, "--shard auto: %s is \"%s\", should be %s", name,
                    value != NULL ? value : "", want);
}

/* SLURM_ARRAY_TASK_ID with _MIN, _MAX and _STEP. */
static ats_code from_array(char *(*look)(const char *), ats_shard *out, ats_err *err)
{
    static const char *const names[] = {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN",
                                        "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"};
    int64_t value[4] = {0, 0, 0, 1};
    for (int i = 0; i < 4; i++)
        if (!whole(look(names[i]), &value[i]) && !(i == 3 && look(names[i]) == NULL))
            return bad_variable(names[i], look(names[i]), "a number", err);
    const int64_t id = value[0], min = value[1], max = value[2], step = value[3];
    if (step < 1 || id < min || id > max || (id - min) % step != 0)
        return ats_fail(err, ATS_E_USAGE,
                        "--shard auto: the array index %lld is not one of %lld to %lld by %lld; "
                        "arrays with gaps (--array=1,5,7) cannot be split, give --shard I/N",
                        (long long)id, (long long)min, (long long)max, (long long)step);
    *out = (ats_shard){(id - min) / step, (max - min) / step + 1, names[0]};
    int64_t count = 0;
    if (whole(look("SLURM_ARRAY_TASK_COUNT"), &count) && count != out->count)
        return ats_fail(err, ATS_E_USAGE,
                        "--shard auto: the array has %lld tasks, but its indices give %lld; arrays "
                        "with gaps (--array=1,5,7) cannot be split, give --shard I/N",
                        (long long)count, (long long)out->count);
    return ATS_OK;
}

typedef struct rank_source {
    const char *rank, *size; /* size NULL: --shards */
} rank_source;

static ats_code from_rank(char *(*look)(const char *), const rank_source *source, int64_t count,
                          ats_shard *out, ats_err *err)
{
    int64_t rank = 0, size = count;
    if (!whole(look(source->rank), &rank))
        return bad_variable(source->rank, look(source->rank), "a number", err);
    if (source->size != NULL && !whole(look(source->size), &size))
        return bad_variable(source->size, look(source->size), "a number", err);
    if (size < 1)
        return ats_fail(err, ATS_E_USAGE,
                        "--shard auto: %s gives this process's place, but not how many there are; "
                        "add --shards N",
                        source->rank);
    if (rank >= size)
        return ats_fail(err, ATS_E_USAGE, "--shard auto: %s is %lld, but there are %lld shards",
                        source->rank, (long long)rank, (long long)size);
    *out = (ats_shard){rank, size, source->rank};
    return ATS_OK;
}

static ats_code from_environment(int64_t count, char *(*look)(const char *), ats_shard *out,
                                 ats_err *err)
{
    static const rank_source ranks[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                        {"SLURM_PROCID", "SLURM_NTASKS"},
                                        {"JOB_COMPLETION_INDEX", NULL}};
    ats_shard shard = {.count = 0};
    ats_code rc = ATS_OK;
    if (look("SLURM_ARRAY_TASK_ID") != NULL) {
        rc = from_array(look, &shard, err);
    } else {
        size_t i = 0;
        while (i < sizeof ranks / sizeof ranks[0] && look(ranks[i].rank) == NULL) i++;
        if (i == sizeof ranks / sizeof ranks[0])
            return ats_fail(err, ATS_E_USAGE,
                            "--shard auto: none of SLURM_ARRAY_TASK_ID, OMPI_COMM_WORLD_RANK, "
                            "SLURM_PROCID and JOB_COMPLETION_INDEX is set; give --shard I/N");
        rc = from_rank(look, &ranks[i], count, &shard, err);
    }
    if (rc != ATS_OK) return rc;
    if (count > 0 && count != shard.count)
        return ats_fail(err, ATS_E_USAGE, "--shards is %lld, but %s gives %lld", (long long)count,
                        shard.from, (long long)shard.count);
    *out = shard;
    return ATS_OK;
}

ats_code ats_shard_parse(const char *text, int64_t count, char *(*look)(const char *),
                         ats_shard *out, ats_err *err)
{
    if (strcmp(text, "auto") == 0) return from_environment(count, look, out, err);
    return parse_pair(text, count, out, err);
}

ats_code ats_shard_deal(const double *cost, int64_t n, int64_t count, ats_arena *arena,
                        int64_t *shard_of, ats_err *err)
{
    double *load = NULL;
    ats_code rc = ATS_NEW0(arena, count, &load, err);
    if (rc != ATS_OK) return rc;
    for (int64_t i = 0; i < n; i++) shard_of[i] = -1;
    for (int64_t dealt = 0; dealt < n; dealt++) {
        int64_t dearest = -1, least = 0;
        for (int64_t i = 0; i < n; i++)
            if (shard_of[i] < 0 && (dearest < 0 || cost[i] > cost[dearest])) dearest = i;
        for (int64_t s = 1; s < count; s++)
            if (load[s] < load[least]) least = s;
        shard_of[dearest] = least;
        load[least] += cost[dearest];
    }
    return ATS_OK;
}

ats_code ats_shard_split(const ats_plan *plan, const ats_shard *shard, ats_arena *arena,
                         uint8_t *mine, ats_err *err)
{
    const int64_t n = plan->selection.n_samples;
    double *cost = NULL, all = 0;
    int64_t *shard_of = NULL;
    ats_code rc;
    if (shard->count <= 0) {
        memset(mine, 1, (size_t)n);
        return ATS_OK;
    }
    ATS_TRY(ATS_NEW(arena, n, &cost, err));
    ATS_TRY(ATS_NEW(arena, n, &shard_of, err));
    for (int64_t s = 0; s < n; s++) all += cost[s] = ats_plan_sample_work(plan, s);
    for (int64_t s = 0; s < n; s++) cost[s] /= all;
    ATS_TRY(ats_shard_deal(cost, n, shard->count, arena, shard_of, err));
    for (int64_t s = 0; s < n; s++) mine[s] = shard_of[s] == shard->index;
out:
    return rc;
}

void ats_shard_job(char *(*look)(const char *), char *out, size_t size)
{
    const char *job = look("SLURM_JOB_ID"), *task = look("SLURM_PROCID");
    out[0] = '\0';
    if (job != NULL) snprintf(out, size, "slurm %s.%s", job, task != NULL ? task : "0");
}
