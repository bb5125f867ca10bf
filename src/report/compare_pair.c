#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "report/compare_private.h"

/* What makes the two incomparable, a line each. */
typedef struct faults {
    ats_text text;
    int64_t count;
} faults;

enum { MAX_FAULTS = 20 };

static void fault_words(faults *f, const char *what, const char *base, const char *candidate)
{
    if (strcmp(base, candidate) == 0 || f->count++ >= MAX_FAULTS) return;
    ats_text_add(&f->text, "\n  %s: baseline %.200s, candidate %.200s", what, base, candidate);
}

static ats_code number_list(ats_compare_state *s, const double *values, int64_t n, const char **out,
                            ats_err *err)
{
    ats_text text = {.arena = s->arena, .err = err};
    for (int64_t i = 0; i < n; i++)
        ats_text_add(&text, "%s%lld", i > 0 ? "," : "", (long long)values[i]);
    return ats_text_done(&text, out);
}

static ats_code word_list(ats_compare_state *s, const char *const *values, int64_t n,
                          const char **out, ats_err *err)
{
    ats_text text = {.arena = s->arena, .err = err};
    for (int64_t i = 0; i < n; i++) ats_text_add(&text, "%s%s", i > 0 ? "," : "", values[i]);
    return ats_text_done(&text, out);
}

static ats_code compare_axes(ats_compare_state *s, faults *f, ats_err *err)
{
    const ats_compare_side *side = s->side;
    const char *list[2][4], *probes[2];
    ats_code rc = ATS_OK;
    for (int i = 0; i < 2; i++) {
        ATS_TRY(number_list(s, side[i].layer, side[i].n_layers, &list[i][0], err));
        ATS_TRY(number_list(s, side[i].head, side[i].n_heads, &list[i][1], err));
        ATS_TRY(word_list(s, side[i].span, side[i].n_spans, &list[i][2], err));
        ATS_TRY(word_list(s, side[i].variant, side[i].n_variants, &list[i][3], err));
        ATS_TRY(ats_arena_printf(s->arena, &probes[i], err, "%lld", (long long)side[i].n_probes));
    }
    fault_words(f, "suite hash", side[0].suite_hash, side[1].suite_hash);
    fault_words(f, "target", side[0].target, side[1].target);
    fault_words(f, "detail", side[0].detail, side[1].detail);
    fault_words(f, "layers", list[0][0], list[1][0]);
    fault_words(f, "heads", list[0][1], list[1][1]);
    fault_words(f, "spans", list[0][2], list[1][2]);
    fault_words(f, "variants", list[0][3], list[1][3]);
    fault_words(f, "probes", probes[0], probes[1]);
out:
    return rc;
}

static ats_code compare_sample(ats_compare_state *s, faults *f, int64_t a, int64_t b, ats_err *err)
{
    const ats_compare_side *base = &s->side[0], *candidate = &s->side[1];
    const struct {
        const char *what, *base, *candidate;
    } items[] = {{"tokens", base->tokens[a], candidate->tokens[b]},
                 {"spans", base->spans[a], candidate->spans[b]},
                 {"probes", base->probes[a], candidate->probes[b]},
                 {"cluster", base->cluster[a], candidate->cluster[b]}};
    ats_code rc = ATS_OK;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        const char *what = NULL;
        ATS_TRY(ats_arena_printf(s->arena, &what, err, "sample %s, %s", base->sample_id[a],
                                 items[i].what));
        fault_words(f, what, items[i].base, items[i].candidate);
    }
out:
    return rc;
}

static int64_t find_sample(const ats_compare_side *side, const char *id)
{
    for (int64_t i = 0; i < side->n_samples; i++)
        if (strcmp(side->sample_id[i], id) == 0) return i;
    return -1;
}

/* The document a sample comes from; its own id where the capture does not say. */
static const char *cluster_name(const ats_compare_side *side, int64_t sample)
{
    if (side->cluster[sample][0] != '\0') return side->cluster[sample];
    if (side->variant_of[sample][0] != '\0') return side->variant_of[sample];
    return side->sample_id[sample];
}

static bool matches(const ats_compare_options *options, ats_finding_kind kind, const char *sample,
                    const char *variant)
{
    char both[1024];
    snprintf(both, sizeof both, "%s:%s", sample, variant != NULL ? variant : "");
    for (int64_t i = 0; i < options->n_allow[kind]; i++) {
        const char *pattern = options->allow[kind][i];
        if (fnmatch(pattern, sample, 0) == 0 || strcmp(pattern, sample) == 0) return true;
        if (variant == NULL) continue;
        if (fnmatch(pattern, variant, 0) == 0 || strcmp(pattern, variant) == 0) return true;
        if (fnmatch(pattern, both, 0) == 0 || strcmp(pattern, both) == 0) return true;
    }
    return false;
}

ats_code ats_compare_find(ats_compare_state *s, ats_finding_kind kind, const char *sample,
                          const char *variant, int64_t count, const char *text)
{
    const bool allowed = matches(s->options, kind, sample, variant);
    s->out->n_findings++;
    s->out->of_kind[kind]++;
    s->out->n_refused += !allowed;
    if (s->out->n_stored >= ATS_COMPARE_FINDINGS) return ATS_OK;
    const char *copy = NULL;
    const ats_code rc = ats_arena_strdup(s->arena, text, &copy, s->err);
    if (rc == ATS_OK)
        s->findings[s->out->n_stored++] = (ats_compare_finding){.kind = kind,
                                                                .sample = sample,
                                                                .variant = variant,
                                                                .text = copy,
                                                                .count = count,
                                                                .allowed = allowed};
    return rc;
}

/* Which variants of a pair ran on both sides; those that ran on one are findings. */
static ats_code pair_variants(ats_compare_state *s, ats_compare_pair *pair)
{
    static const char *const states[] = {"ran", "was skipped", "failed"};
    const ats_compare_side *base = &s->side[0], *candidate = &s->side[1];
    uint8_t *ran = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(s->arena, base->n_variants, &ran, s->err));
    for (int64_t v = 0; v < base->n_variants; v++) {
        const int a = (int)base->status[pair->base * base->n_variants + v];
        const int b = (int)candidate->status[pair->candidate * base->n_variants + v];
        ran[v] = a == 0 && b == 0;
        s->out->n_cases += ran[v];
        if ((a == 0) == (b == 0)) continue;
        char text[128];
        snprintf(text, sizeof text, "%s in the baseline, %s in the candidate",
                 states[a < 0 || a > 2 ? 2 : a], states[b < 0 || b > 2 ? 2 : b]);
        ATS_TRY(ats_compare_find(s, a == 0 ? ATS_FINDING_MISSING : ATS_FINDING_EXTRA,
                                 base->sample_id[pair->base], base->variant[v], 1, text));
    }
    pair->ran = ran;
out:
    return rc;
}

static ats_code pair_samples(ats_compare_state *s, faults *f, ats_err *err)
{
    const ats_compare_side *base = &s->side[0], *candidate = &s->side[1];
    ats_code rc;
    ATS_TRY(ATS_NEW0(s->arena, base->n_samples, &s->pairs, err));
    for (int64_t a = 0; a < base->n_samples; a++) {
        const int64_t b = find_sample(candidate, base->sample_id[a]);
        if (b < 0) {
            ATS_TRY(ats_compare_find(s, ATS_FINDING_MISSING, base->sample_id[a], NULL,
                                     base->n_variants, "the candidate lacks this sample"));
            continue;
        }
        ATS_TRY(compare_sample(s, f, a, b, err));
        s->pairs[s->n_pairs++] = (ats_compare_pair){.base = a, .candidate = b};
    }
    for (int64_t b = 0; b < candidate->n_samples; b++)
        if (find_sample(base, candidate->sample_id[b]) < 0)
            ATS_TRY(ats_compare_find(s, ATS_FINDING_EXTRA, candidate->sample_id[b], NULL,
                                     candidate->n_variants, "the baseline lacks this sample"));
    for (int64_t i = 0; i < s->n_pairs; i++) {
        int64_t same = 0;
        while (strcmp(cluster_name(base, s->pairs[same].base),
                      cluster_name(base, s->pairs[i].base)) != 0)
            same++;
        s->pairs[i].cluster = same < i ? s->pairs[same].cluster : s->out->n_clusters++;
    }
out:
    return rc;
}

/* "base route", then perturbations in the order of the suite. */
static ats_code name_perturbations(ats_compare_state *s, ats_err *err)
{
    const ats_compare_side *side = &s->side[0];
    const char **what = NULL;
    int64_t n = 1;
    ats_code rc;
    ATS_TRY(ATS_NEW(s->arena, 1 + side->n_variants, &what, err));
    ATS_TRY(ATS_NEW(s->arena, side->n_variants, &s->variant_what, err));
    ATS_TRY(ATS_NEW(s->arena, side->n_variants, &s->treatment, err));
    what[0] = "base route";
    for (int64_t v = 0; v < side->n_variants; v++) {
        int64_t w = 1;
        while (w < n && strcmp(what[w], side->perturbation[v]) != 0) w++;
        if (w == n) what[n++] = side->perturbation[v];
        s->variant_what[v] = w;
        s->treatment[v] = strcmp(side->arm[v], "treatment") == 0;
    }
    s->out->what = what;
    s->out->n_what = n;
    s->target = -1;
    for (int64_t i = 0; i < side->n_spans; i++)
        if (side->target[0] != '\0' && strcmp(side->span[i], side->target) == 0) s->target = i;
out:
    return rc;
}

static ats_code hash_file(const char *path, char out[33], ats_err *err)
{
    enum { PIECE = 1 << 20 };
    FILE *stream = fopen(path, "rb");
    XXH3_state_t *state = XXH3_createState();
    char *piece = malloc(PIECE);
    size_t got = 0;
    ats_code rc = ATS_OK;
    if (stream == NULL || state == NULL || piece == NULL) {
        rc = ats_fail(err, ATS_E_IO, "%s cannot be read", path);
        goto out;
    }
    XXH3_128bits_reset(state);
    while ((got = fread(piece, 1, PIECE, stream)) > 0) XXH3_128bits_update(state, piece, got);
    if (ferror(stream)) rc = ats_fail(err, ATS_E_IO, "%s cannot be read", path);
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
out:
    free(piece);
    XXH3_freeState(state);
    if (stream != NULL) fclose(stream);
    return rc;
}

static ats_code fill_head(ats_compare_state *s, ats_err *err)
{
    ats_comparison *out = s->out;
    const ats_compare_side *side = s->side;
    int64_t *layers = NULL, *heads = NULL;
    ats_code rc;
    ATS_TRY(hash_file(side[0].path, out->base_hash, err));
    ATS_TRY(hash_file(side[1].path, out->candidate_hash, err));
    ATS_TRY(ATS_NEW(s->arena, side->n_layers, &layers, err));
    ATS_TRY(ATS_NEW(s->arena, side->n_heads, &heads, err));
    for (int64_t l = 0; l < side->n_layers; l++) layers[l] = (int64_t)side->layer[l];
    for (int64_t h = 0; h < side->n_heads; h++) heads[h] = (int64_t)side->head[h];
    out->layers = layers;
    out->heads = heads;
    out->base_name = side[0].checkpoint;
    out->candidate_name = side[1].checkpoint;
    out->suite = side->suite;
    out->suite_hash = side->suite_hash;
    out->target = side->target;
    out->n_samples = s->n_pairs;
    out->n_layers = side->n_layers;
    out->n_heads = side->n_heads;
    out->n_variants = side->n_variants;
    out->exact = side[0].capture_hashes[0] != '\0' &&
                 strcmp(side[0].capture_hashes, side[1].capture_hashes) == 0;
    /* across builds: the fp32 bars on masses, 4e-6 (1 + A), for logits up to A = 100 */
    out->noise_floor = s->options->noise_floor >= 0                ? s->options->noise_floor
                       : strcmp(side[0].build, side[1].build) == 0 ? 0
                                                                   : 4e-4;
out:
    return rc;
}

ats_code ats_compare_pair_up(ats_compare_state *s, ats_err *err)
{
    faults f = {.text = {.arena = s->arena, .err = err}};
    const char *list = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW(s->arena, ATS_COMPARE_FINDINGS, &s->findings, err));
    s->out->findings = s->findings;
    ATS_TRY(compare_axes(s, &f, err));
    if (f.count == 0) ATS_TRY(pair_samples(s, &f, err));
    if (f.count > MAX_FAULTS)
        ats_text_add(&f.text, "\n  and %lld more", (long long)(f.count - MAX_FAULTS));
    ATS_TRY(ats_text_done(&f.text, &list));
    if (f.count > 0) {
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s and %s cannot be compared; run one suite on one set of prompts with both "
                      "checkpoints:%s",
                      s->side[0].path, s->side[1].path, list);
        goto out;
    }
    if (s->n_pairs == 0) {
        rc = ats_fail(err, ATS_E_INPUT,
                      "%s and %s have no sample in common (%s ... against %s ...), so nothing can "
                      "be compared",
                      s->side[0].path, s->side[1].path, s->side[0].sample_id[0],
                      s->side[1].sample_id[0]);
        goto out;
    }
    for (int64_t i = 0; i < s->n_pairs; i++) ATS_TRY(pair_variants(s, &s->pairs[i]));
    ATS_TRY(name_perturbations(s, err));
    ATS_TRY(fill_head(s, err));
out:
    return rc;
}
