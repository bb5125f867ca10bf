#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare_private.h"

static void number(ats_text *t, const char *name, double value, const char *after)
{
    if (isfinite(value))
        ats_text_add(t, "\"%s\": %.17g%s", name, value, after);
    else
        ats_text_add(t, "\"%s\": null%s", name, after);
}

static void word(ats_text *t, const char *name, const char *value, const char *after)
{
    ats_text_add(t, "\"%s\": ", name);
    if (value != NULL)
        ats_text_json(t, value);
    else
        ats_text_add(t, "null");
    ats_text_add(t, "%s", after);
}

static void whole(ats_text *t, const char *name, int64_t value, const char *after)
{
    ats_text_add(t, "\"%s\": %lld%s", name, (long long)value, after);
}

static void pair(ats_text *t, const char *name, double low, double high, const char *after)
{
    if (isfinite(low) && isfinite(high))
        ats_text_add(t, "\"%s\": [%.17g, %.17g]%s", name, low, high, after);
    else
        ats_text_add(t, "\"%s\": null%s", name, after);
}

static void numbers(ats_text *t, const ats_compare_numbers *x)
{
    whole(t, "n", x->n, ", ");
    number(t, "base", x->base, ", ");
    number(t, "candidate", x->candidate, ", ");
    number(t, "difference", x->difference, ", ");
    number(t, "standard_error", x->error, ", ");
    pair(t, "interval", x->interval.low, x->interval.high, ", ");
    pair(t, "interval_plain_bca", x->interval.plain_low, x->interval.plain_high, ", ");
    number(t, "p", x->p, ", ");
    word(t, "test", ats_stat_test_name(x->test), "");
}

static void row(ats_text *t, const ats_comparison *c, const ats_compare_row *r)
{
    ats_text_add(t, "{");
    word(t, "name", r->name, ", ");
    if (r->gate != NULL) {
        word(t, "metric", r->gate->metric, ", ");
        word(t, "span", r->gate->span, ", ");
        word(t, "part", r->gate->part, ", ");
        word(t, "better", ats_better_name(r->gate->better), ", ");
        number(t, "max_drop", r->gate->max_drop, ", ");
        number(t, "max_rise", r->gate->max_rise, ", ");
        number(t, "equivalence", r->gate->equivalence, ", ");
        word(t, "file", r->gate->file, ", ");
        whole(t, "line", r->gate->line, ", ");
        word(t, "claim", ats_claim_name(r->claim), ", ");
        number(t, "p_holm", r->p_adjusted, ", ");
        word(t, "sentence", r->sentence, ", ");
    }
    whole(t, "cases", r->n_cases, ", ");
    numbers(t, &r->numbers);
    ats_text_add(t, ", \"differences\": [");
    for (int64_t k = 0; k < c->n_clusters; k++) {
        if (k > 0) ats_text_add(t, ", ");
        if (isfinite(r->values[k]))
            ats_text_add(t, "%.17g", r->values[k]);
        else
            ats_text_add(t, "null");
    }
    ats_text_add(t, "]}");
}

/* "name": [\n items \n], each written by its own function. */
typedef void (*item_fn)(ats_text *t, const ats_comparison *c, int64_t i);

static void list(ats_text *t, const ats_comparison *c, const char *name, int64_t n, item_fn item)
{
    ats_text_add(t, "  \"%s\": [", name);
    for (int64_t i = 0; i < n; i++) {
        ats_text_add(t, i > 0 ? ",\n    " : "\n    ");
        item(t, c, i);
    }
    ats_text_add(t, n > 0 ? "\n  ],\n" : "],\n");
}

static void gate_item(ats_text *t, const ats_comparison *c, int64_t i) { row(t, c, &c->rows[i]); }

static void summary_item(ats_text *t, const ats_comparison *c, int64_t i)
{
    row(t, c, &c->rows[c->n_gates + i]);
}

static void cell(ats_text *t, const ats_comparison *c, const ats_compare_cell *x)
{
    ats_text_add(t, "{");
    word(t, "what", c->what[x->what], ", ");
    whole(t, "layer", c->layers[x->l], ", ");
    whole(t, "head", c->heads[x->h], ", ");
    number(t, "q", x->q, ", ");
    whole(t, "case", x->case_index, ", ");
    word(t, "explain", x->explain, ", ");
    numbers(t, &x->numbers);
    ats_text_add(t, "}");
}

static void cell_item(ats_text *t, const ats_comparison *c, int64_t i) { cell(t, c, &c->cells[i]); }

static void worst_item(ats_text *t, const ats_comparison *c, int64_t i)
{
    cell(t, c, &c->worst[i]);
}

/* Of the results' curves: a median, the end of the grid where it is censored. Else of the mean
 * curve: null where it does not cross. */
static void half(ats_text *t, const char *name, const ats_compare_curve *curve, int side,
                 double of_mean)
{
    char key[40];
    snprintf(key, sizeof key, "half_dose_%s", name);
    number(t, key, curve->measured ? curve->half[side].median : of_mean, ", ");
    if (!curve->measured) return;
    snprintf(key, sizeof key, "half_dose_%s_censored", name);
    whole(t, key, curve->half[side].censored, ", ");
}

static void curve_item(ats_text *t, const ats_comparison *c, int64_t i)
{
    const ats_compare_curve *curve = &c->curves[i];
    ats_text_add(t, "{");
    word(t, "perturbation", curve->perturbation, ", ");
    half(t, "base", curve, 0, curve->half_base);
    half(t, "candidate", curve, 1, curve->half_candidate);
    if (curve->measured) {
        whole(t, "half_dose_lower", curve->n_lower, ", ");
        whole(t, "half_dose_equal", curve->n_equal, ", ");
        whole(t, "half_dose_higher", curve->n_higher, ", ");
        whole(t, "half_dose_hidden", curve->n_hidden, ", ");
        ats_text_add(t, "\"competition_strength\": {");
        numbers(t, &curve->strength);
        ats_text_add(t, "}, ");
    }
    ats_text_add(t, "\"points\": [");
    for (int64_t k = 0; k < curve->n; k++) {
        ats_text_add(t, "%s{", k > 0 ? ", " : "");
        number(t, "dose", curve->points[k].dose, ", ");
        numbers(t, &curve->points[k].numbers);
        ats_text_add(t, "}");
    }
    ats_text_add(t, "]}");
}

static void finding_item(ats_text *t, const ats_comparison *c, int64_t i)
{
    static const char *const kinds[] = {"missing", "extra", "undefined"};
    const ats_compare_finding *f = &c->findings[i];
    ats_text_add(t, "{");
    word(t, "kind", kinds[f->kind], ", ");
    word(t, "sample", f->sample, ", ");
    word(t, "variant", f->variant, ", ");
    whole(t, "count", f->count, ", ");
    ats_text_add(t, "\"allowed\": %s, ", f->allowed ? "true" : "false");
    word(t, "text", f->text, "}");
}

static void difference_item(ats_text *t, const ats_comparison *c, int64_t i)
{
    const ats_compare_difference *d = &c->differences[i];
    ats_text_add(t, "{");
    word(t, "variable", d->variable, ", ");
    word(t, "place", d->place, ", ");
    number(t, "base", d->base, ", ");
    number(t, "candidate", d->candidate, ", ");
    whole(t, "count", d->count, "}");
}

static void side(ats_text *t, const char *name, const char *path, const char *hash,
                 const char *checkpoint)
{
    ats_text_add(t, "  \"%s\": {", name);
    word(t, "path", path, ", ");
    word(t, "hash", hash, ", ");
    word(t, "checkpoint", checkpoint, "},\n");
}

ats_code ats_compare_json(ats_arena *arena, const ats_comparison *c, const char **out, ats_err *err)
{
    ats_text text = {.arena = arena, .err = err}, *t = &text;
    ats_text_add(t, "{\n  ");
    word(t, "verdict", c->verdict, ",\n  ");
    word(t, "sentence", c->sentence, ",\n  ");
    whole(t, "exit_status", ats_code_exit(c->code), ",\n");
    side(t, "baseline", c->base, c->base_hash, c->base_name);
    side(t, "candidate", c->candidate, c->candidate_hash, c->candidate_name);
    ats_text_add(t, "  ");
    word(t, "suite", c->suite, ",\n  ");
    word(t, "suite_hash", c->suite_hash, ",\n  ");
    word(t, "target", c->target, ",\n  ");
    number(t, "alpha", c->alpha, ",\n  ");
    whole(t, "resamples", c->resamples, ",\n  ");
    ats_text_add(t, "\"seed\": %llu,\n  ", (unsigned long long)c->seed);
    whole(t, "clusters", c->n_clusters, ",\n  ");
    whole(t, "samples", c->n_samples, ",\n  ");
    whole(t, "cases", c->n_cases, ",\n  ");
    whole(t, "undefined_on_both_sides", c->n_undefined_both, ",\n  ");
    whole(t, "absolute_gates", c->n_absolute, ",\n  ");
    whole(t, "findings_total", c->n_findings, ",\n  ");
    whole(t, "findings_not_allowed", c->n_refused, ",\n");
    list(t, c, "gates", c->n_gates, gate_item);
    list(t, c, "summary", c->n_rows - c->n_gates, summary_item);
    list(t, c, "worst", c->n_worst, worst_item);
    list(t, c, "dose_curves", c->n_curves, curve_item);
    list(t, c, "cells", c->cells != NULL ? c->n_what * c->n_layers * c->n_heads : 0, cell_item);
    list(t, c, "findings", c->n_stored, finding_item);
    list(t, c, "differences", c->n_differences, difference_item);
    ats_text_add(t, "  \"exact\": %s,\n  ", c->exact ? "true" : "false");
    number(t, "noise_floor", c->noise_floor, "\n}\n");
    return ats_text_done(t, out);
}
