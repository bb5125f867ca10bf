#include "engine/digest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "report/results.h"

typedef struct digest {
    ats_arena *arena;
    const ats_plan *plan;
    const ats_outcome *outcome;
    ats_err *err;
} digest;

static int by_count(const void *a, const void *b)
{
    const ats_summary_reason *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->text, y->text);
}

static ats_code digest_reasons(digest *d, ats_summary *out)
{
    ats_summary_reason *reasons = NULL;
    int64_t n = 0;
    ats_code rc =
        ATS_NEW(d->arena, d->outcome->n_skipped + d->outcome->n_failed + 1, &reasons, d->err);
    if (rc != ATS_OK) return rc;
    for (int64_t c = 0; c < d->outcome->n_cases; c++) {
        const ats_case *one = &d->outcome->cases[c];
        if (one->status == ATS_CASE_OK) continue;
        const char *what = one->status == ATS_CASE_FAILED ? "failed" : "skipped";
        int64_t at = 0;
        while (at < n &&
               (strcmp(reasons[at].text, one->message) != 0 || strcmp(reasons[at].what, what) != 0))
            at++;
        if (at == n) reasons[n++] = (ats_summary_reason){.what = what, .text = one->message};
        reasons[at].count++;
    }
    qsort(reasons, (size_t)n, sizeof *reasons, by_count);
    out->reasons = reasons;
    out->n_reasons = n;
    return ATS_OK;
}

/* Mean of the target's log_mass_shift over the cases of a perturbation and arm in one cell. */
static double cell_mean(const digest *d, int64_t perturbation, ats_arm arm, int64_t l, int64_t h)
{
    const ats_plan *plan = d->plan;
    const ats_table *table = &d->outcome->tables.items[0];
    double sum = 0;
    int64_t n = 0;
    for (int64_t c = 0; c < d->outcome->n_cases; c++) {
        const ats_variant *v = &plan->suite->variants[c % plan->suite->n_variants];
        if (v->perturbation != perturbation || v->arm != arm) continue;
        if (d->outcome->cases[c].status != ATS_CASE_OK) continue;
        const double x =
            (double)table->values[(c * plan->shape.n_layers + l) * plan->shape.n_heads + h];
        if (!isfinite(x)) continue;
        sum += x;
        n++;
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

static int64_t layer_number(const ats_plan *plan, int64_t l)
{
    return ats_plan_layer(plan, l)->index;
}

/* Sorted into the first ATS_SUMMARY_HEADS places; ties keep their order. */
static void note_head(ats_summary_weakest *weakest, ats_summary_head head)
{
    int64_t at = weakest->n_heads;
    while (at > 0 && head.treatment < weakest->heads[at - 1].treatment) at--;
    if (at == ATS_SUMMARY_HEADS) return;
    const int64_t last =
        weakest->n_heads < ATS_SUMMARY_HEADS ? weakest->n_heads++ : ATS_SUMMARY_HEADS - 1;
    for (int64_t i = last; i > at; i--) weakest->heads[i] = weakest->heads[i - 1];
    weakest->heads[at] = head;
}

static ats_code weakest_of(digest *d, int64_t perturbation, ats_summary_weakest *weakest)
{
    int64_t at_l = -1, at_h = -1;
    const ats_plan *plan = d->plan;
    ats_summary_weakest out = {.perturbation = plan->suite->perturbations[perturbation].name,
                               .layer = -1,
                               .head = -1,
                               .treatment = NAN,
                               .control = NAN};
    for (int64_t l = 0; l < plan->shape.n_layers; l++)
        for (int64_t h = 0; h < plan->shape.n_heads; h++) {
            const double mean = cell_mean(d, perturbation, ATS_ARM_TREATMENT, l, h);
            if (isnan(mean)) continue;
            note_head(&out,
                      (ats_summary_head){layer_number(plan, l), plan->selection.heads[h], mean});
            if (mean >= out.treatment) continue;
            out.treatment = mean;
            out.control = cell_mean(d, perturbation, ATS_ARM_CONTROL, l, h);
            at_l = l;
            at_h = h;
        }
    *weakest = out;
    if (at_l < 0) return ATS_OK;
    weakest->layer = layer_number(plan, at_l);
    weakest->head = plan->selection.heads[at_h];
    return ats_curve_phrase(d->arena, plan, &d->outcome->curves, perturbation, at_l, at_h,
                            &weakest->curve, d->err);
}

static int by_treatment(const void *a, const void *b)
{
    const double x = ((const ats_summary_weakest *)a)->treatment;
    const double y = ((const ats_summary_weakest *)b)->treatment;
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

static ats_code digest_weakest(digest *d, ats_summary *out)
{
    const int64_t n = d->plan->suite->n_perturbations;
    ats_summary_weakest *weakest = NULL;
    if (d->outcome->tables.items[0].metric < 0) return ATS_OK;
    ats_code rc = ATS_NEW(d->arena, n, &weakest, d->err);
    if (rc != ATS_OK) return rc;
    for (int64_t p = 0; p < n && rc == ATS_OK; p++) rc = weakest_of(d, p, &weakest[p]);
    if (rc != ATS_OK) return rc;
    qsort(weakest, (size_t)n, sizeof *weakest, by_treatment);
    out->weakest = weakest;
    out->n_weakest = n;
    return ATS_OK;
}

static ats_code digest_gates(digest *d, const ats_verdict *verdict, ats_summary *out)
{
    ats_summary_gate *gates = NULL;
    int64_t n = 0;
    ats_code rc = ATS_NEW(d->arena, verdict->n_gates, &gates, d->err);
    if (rc != ATS_OK) return rc;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t g = 0; g < verdict->n_gates; g++) {
            const ats_gate_verdict *v = &verdict->gates[g];
            const bool failed = v->judged && !v->passed;
            if (failed != (pass == 0)) continue;
            gates[n++] = (ats_summary_gate){
                .judged = v->judged, .passed = v->passed, .sentence = v->sentence};
        }
    out->gates = gates;
    out->n_gates = n;
    return ATS_OK;
}

/* Labels of the heads, from the finished file: [samples, layers, heads, probes]. */
static ats_code digest_sharpness(const digest *d, const char *path, ats_summary *out)
{
    const char *const name = "base_sharpness_label";
    ats_result_variable codes = {.values = NULL};
    ats_result_file *file = NULL;
    ats_code rc = ATS_OK;
    if (!d->plan->suite->sharpness) return ATS_OK;
    ATS_TRY(ats_result_open(path, &file, d->err));
    if (!ats_result_has(file, name)) goto out;
    ATS_TRY(ats_result_read(file, name, &codes, d->err));
    const int64_t heads = codes.extent[1] * codes.extent[2],
                  probes = codes.rank > 3 ? codes.extent[3] : 1;
    for (int64_t h = 0; h < heads; h++) {
        int64_t votes[ATS_N_LABELS] = {0};
        for (int64_t i = 0; i < codes.extent[0] * probes; i++) {
            const double code = codes.values[(i / probes * heads + h) * probes + i % probes];
            if (code >= 0 && code < ATS_CAUSE_UNDEFINED) votes[(int)code]++;
        }
        out->sharpness[ats_diagnose_vote(votes)]++;
    }
out:
    free(codes.values);
    ats_result_close(file);
    return rc;
}

static ats_code shell_word(digest *d, const char *word, const char **out)
{
    ats_text text = {.arena = d->arena, .err = d->err};
    ats_text_shell(&text, word);
    return ats_text_done(&text, out);
}

/* The treatment cell where the target lost most; the first that ran when nothing is defined. */
static void worst_cell(const digest *d, int64_t *case_index, int64_t *l, int64_t *h)
{
    const ats_plan *plan = d->plan;
    const ats_table *table = &d->outcome->tables.items[0];
    const int64_t n_layers = plan->shape.n_layers, n_heads = plan->shape.n_heads;
    double worst = INFINITY;
    *case_index = -1;
    *l = *h = 0;
    for (int64_t c = 0; c < d->outcome->n_cases; c++) {
        if (d->outcome->cases[c].status != ATS_CASE_OK) continue;
        if (*case_index < 0) *case_index = c;
        if (table->metric < 0 ||
            plan->suite->variants[c % plan->suite->n_variants].arm != ATS_ARM_TREATMENT)
            continue;
        for (int64_t i = 0; i < n_layers * n_heads; i++) {
            const double x = (double)table->values[c * n_layers * n_heads + i];
            if (!isfinite(x) || x >= worst) continue;
            worst = x;
            *case_index = c;
            *l = i / n_heads;
            *h = i % n_heads;
        }
    }
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* "suites/../examples/a.h5" as "examples/a.h5", where that is the same file. */
static ats_code plain_path(digest *d, const char *path, const char **out)
{
    char *plain = NULL;
    size_t used = 0;
    ats_code rc;
    ATS_TRY(ATS_NEW(d->arena, (int64_t)strlen(path) + 1, &plain, d->err));
    for (const char *at = path; *at != '\0';) {
        const size_t length = strcspn(at, "/");
        const bool up = length == 2 && at[0] == '.' && at[1] == '.';
        size_t last = used > 0 ? used - 1 : 0; /* start of the component before */
        while (last > 0 && plain[last - 1] != '/') last--;
        const bool above = used - last == 3 && memcmp(plain + last, "../", 3) == 0;
        if (up && used > last + 1 && !above) {
            used = last;
        } else {
            memcpy(plain + used, at, length);
            used += length;
            if (at[length] == '/') plain[used++] = '/';
        }
        at += length + (at[length] == '/');
    }
    plain[used] = '\0';
    *out = same_file(plain, path) ? plain : path;
out:
    return rc;
}

static ats_code next_command(digest *d, const char *program, const char *path, const char **out)
{
    const ats_plan *plan = d->plan;
    const char *file = NULL, *capture = NULL, *plain = NULL;
    int64_t c, l, h;
    ats_code rc;
    ATS_TRY(shell_word(d, program, &program));
    ATS_TRY(shell_word(d, path, &file));
    worst_cell(d, &c, &l, &h);
    if (c < 0) {
        ATS_TRY(ats_arena_printf(d->arena, out, d->err, "%s inspect %s", program, file));
        goto out;
    }
    const ats_chosen *chosen = &plan->selection.samples[c / plan->suite->n_variants];
    ATS_TRY(plain_path(d, plan->captures[chosen->capture]->path, &plain));
    ATS_TRY(shell_word(d, plain, &capture));
    ATS_TRY(ats_arena_printf(d->arena, out, d->err,
                             "%s explain %s --case %lld --layer %lld --head %lld --capture %s",
                             program, file, (long long)c, (long long)layer_number(plan, l),
                             (long long)plan->selection.heads[h], capture));
out:
    return rc;
}

static ats_code capture_names(digest *d, const char **out)
{
    const char *path = d->plan->captures[0]->path;
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (d->plan->n_captures == 1) {
        *out = name;
        return ATS_OK;
    }
    return ats_arena_printf(d->arena, out, d->err, "%s and %lld more", name,
                            (long long)d->plan->n_captures - 1);
}

ats_code ats_digest(ats_arena *arena, const ats_plan *plan, const ats_outcome *outcome,
                    const ats_verdict *verdict, const char *program, const char *path,
                    ats_summary *out, ats_err *err)
{
    digest d = {arena, plan, outcome, err};
    const char *model = plan->captures[0]->model_id;
    ats_summary s = {
        .suite = plan->suite->name,
        .model = model != NULL && model[0] != '\0' ? model : "a checkpoint without a name",
        .backend = plan->backend->name,
        .target = plan->suite->target != NULL ? plan->suite->target : "no target",
        .path = path,
        .n_samples = plan->selection.n_samples,
        .n_layers = plan->shape.n_layers,
        .n_heads = plan->shape.n_heads,
        .n_ok = outcome->n_ok,
        .n_skipped = outcome->n_skipped,
        .n_failed = outcome->n_failed,
        .n_undefined = outcome->n_undefined,
        .seconds = outcome->total,
    };
    ats_code rc;
    ATS_TRY(capture_names(&d, &s.captures));
    ATS_TRY(digest_reasons(&d, &s));
    ATS_TRY(digest_weakest(&d, &s));
    ATS_TRY(digest_sharpness(&d, path, &s));
    ATS_TRY(digest_gates(&d, verdict, &s));
    ATS_TRY(next_command(&d, program, path, &s.next));
    *out = s;
out:
    return rc;
}
