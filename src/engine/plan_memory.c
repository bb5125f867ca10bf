#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "capture/describe.h"
#include "engine/plan_private.h"

static const int64_t program = (int64_t)128 << 20; /* code, libraries, HDF5, what malloc keeps */
static const int64_t batch_limit = (int64_t)192 << 20; /* bytes of recorder and edits */
static const int64_t cache_limit = (int64_t)192 << 20; /* bytes of tensors kept for later donors */

/* The largest unit of one layer, and what it needs beside the batch. */
typedef struct unit {
    ats_problem problem; /* its shape */
    int64_t layer_bytes; /* tensors of a sample, whole */
    int64_t head_bytes;  /* the same with one key head */
    int64_t keys_bytes;  /* keys and values of one key head */
    int64_t stream_room; /* while those are read into a file */
    int64_t samples;     /* in use at a time: the sample, and its donor */
} unit;

static const double GIB = 1073741824.0;

/* Index of the chosen sample with the most keys. */
static int64_t longest(const ats_selection *selection)
{
    int64_t best = 0;
    for (int64_t s = 1; s < selection->n_samples; s++)
        if (selection->samples[s].sample->n_keys > selection->samples[best].sample->n_keys)
            best = s;
    return best;
}

static ats_code measure(const ats_plan *plan, int64_t sample, int64_t l, ats_arena *arena,
                        unit *out, ats_err *err)
{
    const ats_selection *selection = &plan->selection;
    const ats_chosen *chosen = &selection->samples[sample];
    const ats_capture *capture = plan->captures[chosen->capture];
    const ats_layer *layer = &capture->layers[selection->layers[l]];
    ats_storage storage;
    ats_group *groups = NULL;
    int64_t n_groups = 0;
    ats_code rc;
    ATS_TRY(ats_capture_storage(capture, chosen->index, selection->layers[l], &storage, err));
    ATS_TRY(ats_select_groups(arena, selection, l, &groups, &n_groups, err));
    ats_pick pick = {.n_probes = chosen->n_probes, .probes = chosen->probes};
    for (int64_t g = 0; g < n_groups; g++)
        if (groups[g].n_heads > pick.n_heads) pick.n_heads = groups[g].n_heads;
    if (pick.n_heads == 0) pick.n_heads = 1;
    unit u = {.layer_bytes = storage.bytes, .samples = 1 + (chosen->donor >= 0)};
    ATS_TRY(ats_problem_shape(arena, layer, chosen->sample, &pick, &plan->axis, 1,
                              plan->suite->top_k, storage.keep || storage.bias, &u.problem, err));
    u.problem.k_dtype = storage.k_dtype;
    u.problem.v_dtype = storage.v_dtype;
    const int64_t one =
        chosen->sample->n_keys * (layer->d_qk * (int64_t)ats_dtype_size(storage.k_dtype) +
                                  layer->d_v * (int64_t)ats_dtype_size(storage.v_dtype));
    u.head_bytes = storage.bytes - (layer->n_kv_heads - 1) * one;
    u.keys_bytes = one;
    u.stream_room = storage.stream_room;
    *out = u;
out:
    return rc;
}

/* Positions, tokens, spans of every sample, what threads keep for building edits, the result. */
static int64_t standing_bytes(const ats_plan *plan)
{
    int64_t keys = 0, most = 0;
    for (int64_t c = 0; c < plan->n_captures; c++)
        for (int64_t s = 0; s < plan->captures[c]->n_samples; s++) {
            const int64_t n = plan->captures[c]->samples[s].n_keys;
            keys += n;
            most = n > most ? n : most;
        }
    /* Rows of the result wait for a full chunk, and once more while they are compressed. */
    const int64_t result = (plan->shape.detail_head ? plan->bytes_head : plan->bytes_probe) /
                           (plan->selection.n_samples * plan->selection.n_layers);
    const int64_t diagnosis = plan->diagnoses ? 116 * most : 0; /* a row's keys, by thread */
    return program + 2 * result + 48 * keys +
           ats_threads() * (((int64_t)6 << 20) + 24 * most + diagnosis) + 64 * most;
}

/* How much of a unit's tensors is in memory at a time; each less than the one before. */
typedef enum way { LAYERS, HEADS, STREAMS } way;

static int64_t tensor_bytes(const ats_plan *plan, const unit *u, way w)
{
    if (w == LAYERS) return u->layer_bytes;
    if (w == HEADS) return u->head_bytes;
    return u->head_bytes - u->keys_bytes + plan->stream.resident;
}

/* Memory of everything but the backend with this batch. */
static int64_t other_bytes(const ats_plan *plan, const unit *u, way w, int64_t edits)
{
    return standing_bytes(plan) + u->samples * tensor_bytes(plan, u, w) + edits +
           (w == STREAMS ? u->stream_room : 0);
}

/* Fits the unit at a batch; *total: what it takes, or the least that it would. */
static bool fits(const ats_plan *plan, const unit *u, way w, int64_t batch, int64_t *workspace,
                 int64_t *total)
{
    const int64_t other = other_bytes(plan, u, w, ats_plan_batch_bytes(plan, batch));
    ats_problem problem = u->problem;
    problem.memory = plan->memory > 0 ? plan->memory - other : 0;
    if (plan->memory > 0 && problem.memory < 1) problem.memory = 1;
    const size_t need = plan->backend->workspace_bytes(&problem, batch);
    /* Other samples have as many keys at most, but may have more spans, so more segments. */
    const int64_t bytes = need > (size_t)INT64_MAX / 4
                              ? INT64_MAX / 4
                              : (int64_t)(need + need / 8) + ((int64_t)1 << 20);
    *workspace = bytes;
    *total = other + bytes;
    return plan->memory <= 0 || *total <= plan->memory;
}

static ats_code refuse(const ats_plan *plan, const unit *u, bool streams, int64_t least,
                       ats_err *err)
{
    return ats_fail(err, ATS_E_MEMORY,
                    "%lld keys with %lld query rows a key head need %.2f GiB, even one key head "
                    "and one variant at a time%s; %s %.2f GiB. Give --memory %lldM, or choose "
                    "fewer probes (select.probes) or shorter samples",
                    (long long)u->problem.n_keys, (long long)u->problem.n_rows, (double)least / GIB,
                    streams ? ", keys and values in a file" : "",
                    plan->memory_given ? "--memory allows" : "this machine leaves",
                    (double)plan->memory / GIB, (long long)((least >> 20) + 1));
}

/* The fewest batches of about one size that fit. */
static int64_t first_batch(const ats_plan *plan)
{
    const int64_t n = plan->suite->n_variants;
    int64_t room = batch_limit;
    if (plan->memory > 0 && plan->memory / 4 < room) room = plan->memory / 4;
    for (int64_t pieces = 1; pieces < n; pieces += 1 + pieces / 4) {
        const int64_t batch = (n + pieces - 1) / pieces;
        if (ats_plan_batch_bytes(plan, batch) <= room) return batch;
    }
    return 1;
}

static way way_of(const ats_plan *plan)
{
    return plan->streams ? STREAMS : plan->by_head ? HEADS : LAYERS;
}

/* A batch of `least` or more, halved from the plan's, with which the unit fits in one of the ways.
 * *total: the least that was tried. */
static bool try_ways(ats_plan *plan, const unit *u, way first, way last, int64_t least,
                     int64_t *total)
{
    for (int64_t batch = plan->batch;; batch /= 2) {
        for (way w = first; w <= last; w++) {
            int64_t workspace = 0;
            if (!fits(plan, u, w, batch, &workspace, total)) continue;
            plan->by_head = w >= HEADS;
            plan->streams = w == STREAMS;
            plan->batch = batch;
            if (workspace > plan->workspace_bytes) plan->workspace_bytes = workspace;
            return true;
        }
        if (batch / 2 < least || batch == 1) return false;
    }
}

/* Whole layers where they fit, else single key heads; then smaller batches, down to an eighth: more
 * passes over the keys than that cost more than a file does. Then keys and values in a file. */
static ats_code settle(ats_plan *plan, const unit *u, ats_err *err)
{
    int64_t total = 0;
    const way now = way_of(plan);
    const bool useful = plan->backend->streams &&
                        u->keys_bytes > plan->stream.resident + u->stream_room + u->keys_bytes / 8;
    if (now != STREAMS &&
        try_ways(plan, u, now, HEADS, useful ? (plan->batch + 7) / 8 : 1, &total))
        return ATS_OK;
    if ((useful || now == STREAMS) && try_ways(plan, u, STREAMS, STREAMS, 1, &total)) return ATS_OK;
    return refuse(plan, u, useful || now == STREAMS, total, err);
}

/* 80 % of what is usable: estimates are estimates. */
static void find_budget(ats_plan *plan, int64_t given)
{
    plan->memory_given = given > 0;
    plan->memory = given;
    if (given > 0) return;
    const ats_memory machine = ats_memory_read("");
    const int64_t usable = ats_memory_usable(&machine);
    plan->memory = usable > 0 ? usable / 5 * 4 : usable == 0 ? 1 : 0;
    plan->memory_of_group = machine.group >= 0 && usable == machine.group;
}

/* What is left after the units goes to tensors kept for later, to pages of a file, and to the
 * backend. */
static ats_code share_rest(ats_plan *plan, int64_t taken, int64_t tensors, int64_t samples,
                           int64_t keys, ats_err *err)
{
    const int64_t left = plan->memory > 0 ? plan->memory - taken - plan->workspace_bytes
                                          : samples * tensors + cache_limit;
    const bool more = plan->selection.n_samples * plan->selection.n_layers > 1;
    if (plan->streams) {
        const int64_t pages = left / 2 / samples, most = keys + keys / 8;
        const int64_t given = pages < most ? pages : most;
        plan->stream.resident += given;
        plan->scratch_bytes = samples * keys;
        plan->peak_bytes = taken + plan->workspace_bytes + samples * given;
        return ats_scratch_check(plan->stream.folder, plan->scratch_bytes, err);
    }
    plan->read_ahead = more && !plan->by_head && left >= samples * tensors;
    const int64_t rest = left - (plan->read_ahead ? samples * tensors : 0);
    plan->tensor_cache = rest < 0 ? 0 : rest < cache_limit ? rest : cache_limit;
    plan->peak_bytes = taken + plan->workspace_bytes + plan->tensor_cache +
                       (plan->read_ahead ? samples * tensors : 0);
    return ATS_OK;
}

ats_code ats_plan_memory(ats_plan *plan, const ats_plan_options *options, ats_err *err)
{
    const int64_t sample = longest(&plan->selection);
    const char *folder = options != NULL ? options->scratch : NULL;
    int64_t largest = 0, tensors = 0, keys = 0, samples = 1;
    ats_arena arena;
    ats_code rc = ATS_OK;
    ats_arena_init(&arena, false);
    find_budget(plan, options != NULL ? options->memory : 0);
    plan->batch = first_batch(plan);
    plan->stream = (ats_stream){.folder = folder != NULL ? folder : ats_scratch_folder(),
                                .resident = ats_scratch_least(ats_threads())};
    /* Twice: a layer that needs single heads or a smaller batch changes what the others have. */
    for (int round = 0; round < 2; round++)
        for (int64_t l = 0; l < plan->selection.n_layers; l++) {
            unit u;
            ats_arena_reset(&arena);
            ATS_TRY(measure(plan, sample, l, &arena, &u, err));
            ATS_TRY(settle(plan, &u, err));
            const int64_t other =
                other_bytes(plan, &u, way_of(plan), ats_plan_batch_bytes(plan, plan->batch));
            if (other > largest) largest = other;
            const int64_t own = tensor_bytes(plan, &u, way_of(plan));
            if (own > tensors) tensors = own;
            if (u.keys_bytes > keys) keys = u.keys_bytes;
            samples = u.samples;
        }
    ATS_TRY(share_rest(plan, largest, tensors, samples, keys, err));
    if (plan->memory > 0)
        plan->workspace_limit = plan->memory - plan->peak_bytes + plan->workspace_bytes;
out:
    ats_arena_fini(&arena);
    return rc;
}
