#include "engine/select.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* "a, b, c" of what is there, for messages; cut off with "..." */
typedef struct listing {
    char text[512];
    size_t used;
} listing;

static void list_add(listing *list, const char *item)
{
    if (list->used + strlen(item) + 8 > sizeof list->text) {
        if (list->used + 6 < sizeof list->text && strstr(list->text, "...") == NULL)
            list->used += (size_t)snprintf(list->text + list->used, 6, ", ...");
        return;
    }
    list->used += (size_t)snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s",
                                   list->used > 0 ? ", " : "", item);
}

static bool sample_wanted(const ats_select *select, const char *id, uint8_t *used)
{
    bool wanted = select->all_samples;
    for (int64_t i = 0; i < select->samples.count; i++) {
        if (strcmp(select->samples.items[i], id) != 0 &&
            fnmatch(select->samples.items[i], id, 0) != 0)
            continue;
        wanted = true;
        used[i] = 1;
    }
    return wanted;
}

static ats_code fail_no_sample(const ats_suite *suite, ats_capture *const *captures,
                               int64_t n_captures, const char *wanted, ats_err *err)
{
    listing there = {.used = 0};
    for (int64_t c = 0; c < n_captures; c++)
        for (int64_t s = 0; s < captures[c]->n_samples; s++)
            list_add(&there, captures[c]->samples[s].id);
    return ats_fail(err, ATS_E_SUITE,
                    "%s: select.samples: no sample matches '%s'; the captures hold %s", suite->path,
                    wanted, there.used > 0 ? there.text : "no sample at all");
}

/* Samples in capture order; every pattern must match at least one. */
static ats_code choose_samples(ats_arena *arena, const ats_suite *suite,
                               ats_capture *const *captures, int64_t n_captures, ats_chosen **out,
                               int64_t *count, ats_err *err)
{
    const ats_select *select = &suite->select;
    int64_t total = 0, n = 0;
    for (int64_t c = 0; c < n_captures; c++) total += captures[c]->n_samples;
    ats_chosen *chosen = NULL;
    uint8_t *used = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, total, &chosen, err));
    ATS_TRY(ATS_NEW0(arena, select->samples.count + 1, &used, err));
    for (int64_t c = 0; c < n_captures; c++)
        for (int64_t s = 0; s < captures[c]->n_samples; s++)
            if (sample_wanted(select, captures[c]->samples[s].id, used))
                chosen[n++] = (ats_chosen){
                    .capture = c, .index = s, .sample = &captures[c]->samples[s], .donor = -1};
    for (int64_t i = 0; i < select->samples.count; i++)
        if (!used[i])
            ATS_TRY(fail_no_sample(suite, captures, n_captures, select->samples.items[i], err));
    if (n == 0) ATS_TRY(fail_no_sample(suite, captures, n_captures, "all", err));
    *out = chosen;
    *count = n;
out:
    return rc;
}

static ats_code refuse_same_ids(const ats_chosen *chosen, int64_t n, ats_capture *const *captures,
                                ats_err *err)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (strcmp(chosen[i].sample->id, chosen[j].sample->id) == 0)
                return ats_fail(err, ATS_E_INPUT,
                                "sample %s is in %s and again in %s; a result names samples by "
                                "id, so choose one of them with select.samples or --capture",
                                chosen[i].sample->id, captures[chosen[j].capture]->path,
                                captures[chosen[i].capture]->path);
    return ATS_OK;
}

static bool probe_wanted(const ats_select *select, const ats_sample *sample, int64_t probe)
{
    const int64_t n = sample->n_probes;
    if (select->probes == ATS_PROBES_ALL) return true;
    if (select->probes == ATS_PROBES_LAST) return probe == n - 1;
    if (select->probes == ATS_PROBES_ROLE)
        return strcmp(sample->probes[probe].role, select->probe_role) == 0;
    if (select->probe_index.all) return true;
    for (int64_t i = 0; i < select->probe_index.count; i++) {
        const int64_t item = select->probe_index.items[i];
        if ((item < 0 ? n + item : item) == probe) return true;
    }
    return false;
}

static ats_code choose_probes(ats_arena *arena, const ats_select *select, ats_chosen *chosen,
                              ats_err *err)
{
    int64_t *probes = NULL, n = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, chosen->sample->n_probes + 1, &probes, err));
    for (int64_t p = 0; p < chosen->sample->n_probes; p++)
        if (probe_wanted(select, chosen->sample, p)) probes[n++] = p;
    if (select->probes == ATS_PROBES_INDEX && select->probe_index.every > 1) {
        int64_t kept = 0;
        for (int64_t i = 0; i < n; i += select->probe_index.every) probes[kept++] = probes[i];
        n = kept;
    }
    chosen->probes = probes;
    chosen->n_probes = n;
out:
    return rc;
}

static ats_code fail_no_probe(const ats_suite *suite, const ats_chosen *chosen, int64_t n,
                              ats_err *err)
{
    listing roles = {.used = 0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = 0; p < chosen[i].sample->n_probes; p++) {
            const char *role = chosen[i].sample->probes[p].role;
            if (strstr(roles.text, role) == NULL) list_add(&roles, role);
        }
    if (suite->select.probes == ATS_PROBES_ROLE)
        return ats_fail(err, ATS_E_SUITE,
                        "%s: select.probes: no chosen sample has a probe of role '%s'; the roles "
                        "there are: %s",
                        suite->path, suite->select.probe_role,
                        roles.used > 0 ? roles.text : "none");
    return ats_fail(err, ATS_E_SUITE,
                    "%s: select.probes: no chosen sample has such a probe; `attnstress inspect` "
                    "shows how many there are",
                    suite->path);
}

/* Drops the samples without a wanted probe and sizes the probe axis. */
static ats_code keep_with_probes(ats_arena *arena, const ats_suite *suite, ats_chosen *chosen,
                                 int64_t n, ats_selection *out, ats_err *err)
{
    const char **left_out = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, n, &left_out, err));
    for (int64_t i = 0; i < n; i++) ATS_TRY(choose_probes(arena, &suite->select, &chosen[i], err));
    int64_t most = 0, lost = 0;
    for (int64_t i = 0; i < n; i++) {
        if (chosen[i].n_probes > most) most = chosen[i].n_probes;
        if (chosen[i].n_probes == 0) left_out[lost++] = chosen[i].sample->id;
    }
    if (most == 0) ATS_TRY(fail_no_probe(suite, chosen, n, err));
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (chosen[i].n_probes > 0) chosen[kept++] = chosen[i];
    out->samples = chosen;
    out->n_samples = kept;
    out->n_probes = most;
    out->left_out = left_out;
    out->n_left_out = lost;
out:
    return rc;
}

static bool same_text(const char *a, const char *b)
{
    return a != NULL && b != NULL && a[0] != '\0' && strcmp(a, b) == 0;
}

/* The next sample in the capture that is neither a variant of another one nor, where there is a
 * choice, of the same document; -1 when there is none. */
static int64_t donor_of(const ats_capture *capture, int64_t sample)
{
    const ats_sample *own = &capture->samples[sample];
    for (int pass = 0; pass < 2; pass++)
        for (int64_t step = 1; step < capture->n_samples; step++) {
            const int64_t at = (sample + step) % capture->n_samples;
            const ats_sample *other = &capture->samples[at];
            if (other->variant_of != NULL || same_text(other->id, own->variant_of)) continue;
            if (pass == 0 && same_text(other->cluster, own->cluster)) continue;
            return at;
        }
    return -1;
}

static bool same_layer(const ats_layer *a, const ats_layer *b)
{
    return a->index == b->index && a->n_q_heads == b->n_q_heads && a->n_kv_heads == b->n_kv_heads &&
           a->d_qk == b->d_qk && a->d_v == b->d_v;
}

static ats_code check_same_layers(ats_capture *const *captures, int64_t n_captures, ats_err *err)
{
    const ats_capture *first = captures[0];
    for (int64_t c = 1; c < n_captures; c++) {
        bool same = captures[c]->n_layers == first->n_layers;
        for (int64_t l = 0; same && l < first->n_layers; l++)
            same = same_layer(&captures[c]->layers[l], &first->layers[l]);
        if (!same)
            return ats_fail(err, ATS_E_INPUT,
                            "%s and %s hold different layers; captures of one run need the same "
                            "layers, so capture them alike or run them apart",
                            first->path, captures[c]->path);
    }
    return ATS_OK;
}

static bool layer_wanted(const ats_select_ints *wanted, const ats_capture *capture, int64_t at)
{
    if (wanted->all || wanted->count == 0) return true;
    for (int64_t i = 0; i < wanted->count; i++) {
        const int64_t item = wanted->items[i];
        if (item < 0 ? capture->n_layers + item == at : capture->layers[at].index == item)
            return true;
    }
    return false;
}

static ats_code choose_layers(ats_arena *arena, const ats_suite *suite, const ats_capture *capture,
                              ats_selection *out, ats_err *err)
{
    const ats_select_ints *wanted = &suite->select.layers;
    int64_t *layers = NULL, n = 0, seen = 0;
    listing there = {.used = 0};
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, capture->n_layers + 1, &layers, err));
    for (int64_t l = 0; l < capture->n_layers; l++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)capture->layers[l].index);
        list_add(&there, number);
        if (!layer_wanted(wanted, capture, l)) continue;
        if (wanted->every <= 1 || seen % wanted->every == 0) layers[n++] = l;
        seen++;
    }
    if (n == 0)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "%s: select.layers: none of these layers is in %s, which holds %s",
                         suite->path, capture->path, there.used > 0 ? there.text : "none"));
    out->layers = layers;
    out->n_layers = n;
out:
    return rc;
}

static bool head_wanted(const ats_select_ints *wanted, int64_t head, int64_t n_heads)
{
    if (wanted->all || wanted->count == 0) return true;
    for (int64_t i = 0; i < wanted->count; i++) {
        const int64_t item = wanted->items[i];
        if ((item < 0 ? n_heads + item : item) == head) return true;
    }
    return false;
}

static ats_code choose_heads(ats_arena *arena, const ats_suite *suite, const ats_capture *capture,
                             ats_selection *out, ats_err *err)
{
    const ats_select_ints *wanted = &suite->select.heads;
    int64_t most = 0, n = 0, seen = 0;
    for (int64_t l = 0; l < out->n_layers; l++) {
        const int64_t heads = capture->layers[out->layers[l]].n_q_heads;
        if (heads > most) most = heads;
    }
    int64_t *heads = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, most + 1, &heads, err));
    for (int64_t h = 0; h < most; h++) {
        if (!head_wanted(wanted, h, most)) continue;
        if (wanted->every <= 1 || seen % wanted->every == 0) heads[n++] = h;
        seen++;
    }
    if (n == 0)
        ATS_TRY(ats_fail(err, ATS_E_SUITE,
                         "%s: select.heads: none of these heads exists; the layers have query "
                         "heads 0 to %lld",
                         suite->path, (long long)most - 1));
    ATS_TRY(ATS_NEW0(arena, out->n_layers * n, &out->head_on, err));
    for (int64_t l = 0; l < out->n_layers; l++)
        for (int64_t h = 0; h < n; h++)
            out->head_on[l * n + h] = heads[h] < capture->layers[out->layers[l]].n_q_heads;
    out->heads = heads;
    out->n_heads = n;
out:
    return rc;
}

ats_code ats_select_make(ats_arena *arena, const ats_suite *suite, ats_capture *const *captures,
                         int64_t n_captures, ats_selection *out, ats_err *err)
{
    ats_selection made = {.n_captures = n_captures, .captures = captures};
    ats_chosen *chosen = NULL;
    int64_t n = 0;
    ats_code rc;
    ATS_TRY(check_same_layers(captures, n_captures, err));
    ATS_TRY(choose_samples(arena, suite, captures, n_captures, &chosen, &n, err));
    ATS_TRY(refuse_same_ids(chosen, n, captures, err));
    for (int64_t i = 0; i < n; i++)
        chosen[i].donor = donor_of(captures[chosen[i].capture], chosen[i].index);
    ATS_TRY(keep_with_probes(arena, suite, chosen, n, &made, err));
    ATS_TRY(choose_layers(arena, suite, captures[0], &made, err));
    ATS_TRY(choose_heads(arena, suite, captures[0], &made, err));
    *out = made;
out:
    return rc;
}

ats_code ats_select_groups(ats_arena *arena, const ats_selection *selection, int64_t at,
                           ats_group **out, int64_t *count, ats_err *err)
{
    const ats_layer *layer = &selection->captures[0]->layers[selection->layers[at]];
    const int64_t share = layer->n_q_heads / layer->n_kv_heads;
    ats_group *groups = NULL;
    int64_t *heads = NULL, *place = NULL, n = 0, used = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(arena, selection->n_heads, &groups, err));
    ATS_TRY(ATS_NEW(arena, selection->n_heads, &heads, err));
    ATS_TRY(ATS_NEW(arena, selection->n_heads, &place, err));
    for (int64_t h = 0; h < selection->n_heads; h++) {
        if (!selection->head_on[at * selection->n_heads + h]) continue;
        const int64_t kv_head = selection->heads[h] / share;
        heads[used] = selection->heads[h];
        place[used] = h;
        if (n == 0 || groups[n - 1].kv_head != kv_head)
            groups[n++] =
                (ats_group){.kv_head = kv_head, .heads = heads + used, .place = place + used};
        groups[n - 1].n_heads++;
        used++;
    }
    *out = groups;
    *count = n;
out:
    return rc;
}
