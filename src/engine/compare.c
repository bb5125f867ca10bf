#include "engine/compare.h"

#include <math.h>

#include "report/html.h"
#include "report/results.h"

static ats_code stored_suite(ats_arena *arena, const ats_compare_options *options, ats_suite **out,
                             ats_err *err)
{
    const char *path = options->base, *name = NULL;
    ats_result_file *file = options->base_file;
    char **texts = NULL;
    int64_t n = 0;
    ats_code rc = file != NULL ? ATS_OK : ats_result_open(path, &file, err);
    if (rc != ATS_OK) return ats_prepend(err, rc, "baseline");
    ATS_TRY(ats_result_texts(file, "suite", &texts, &n, err));
    ATS_TRY(ats_arena_printf(arena, &name, err, "%s:/suite", path));
    rc = ats_suite_parse(name, texts[0], NULL, 0, out, err);
out:
    ats_result_free_texts(texts, n);
    if (file != options->base_file) ats_result_close(file);
    return rc;
}

static ats_code visible(ats_arena *arena, const char *value, const char **out, ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    if (value == NULL) return ATS_OK;
    ats_html_visible(&text, value);
    return ats_text_done(&text, out);
}

/* Names are made printable, as the names of the results are. */
static ats_code make_gate(ats_arena *arena, const ats_suite *suite, const ats_gate *gate,
                          bool in_file, ats_compare_gate *out, ats_err *err)
{
    const char **variants = NULL;
    ats_code rc;
    *out = (ats_compare_gate){.metric = gate->metric,
                              .part = gate->part,
                              .reduce = gate->reduce,
                              .better = gate->better,
                              .max_drop = gate->max_drop,
                              .max_rise = gate->max_rise,
                              .equivalence = gate->equivalence,
                              .file = in_file ? gate->place.file : NULL,
                              .line = gate->place.line,
                              .column = gate->place.column};
    ATS_TRY(visible(arena, gate->name, &out->name, err));
    ATS_TRY(visible(arena, gate->span, &out->span, err));
    ATS_TRY(ATS_NEW(arena, suite->n_variants, &variants, err));
    for (int64_t v = 0; v < suite->n_variants; v++)
        if (ats_gate_matches(suite, gate, &suite->variants[v]))
            ATS_TRY(visible(arena, suite->variants[v].id, &variants[out->n_variants++], err));
    out->variants = variants;
out:
    return rc;
}

static ats_code make_gates(ats_arena *arena, const ats_suite *suite, bool in_file,
                           ats_compare_options *options, ats_err *err)
{
    ats_compare_gate *gates = NULL;
    ats_code rc = ATS_NEW(arena, suite->n_gates, &gates, err);
    options->n_gates = options->n_absolute = 0;
    for (int64_t g = 0; g < suite->n_gates && rc == ATS_OK; g++) {
        const ats_gate *gate = &suite->gates[g];
        if (!ats_gate_compares(gate))
            options->n_absolute++;
        else
            rc = make_gate(arena, suite, gate, in_file, &gates[options->n_gates++], err);
    }
    options->gates = gates;
    return rc;
}

ats_code ats_compare_run(const char *gates, const ats_compare_options *options, ats_compared *out,
                         ats_err *err)
{
    ats_compared made = {.suite = NULL};
    ats_compare_options filled = *options;
    ats_code rc;
    ATS_TRY(gates != NULL ? ats_suite_load(gates, NULL, 0, &made.suite, err)
                          : stored_suite(&made.arena, options, &made.suite, err));
    ATS_TRY(make_gates(&made.arena, made.suite, gates != NULL, &filled, err));
    if (filled.seed == 0) filled.seed = made.suite->seed;
    ATS_TRY(ats_compare(&filled, &made.comparison, err));
    *out = made;
    made = (ats_compared){.suite = NULL};
out:
    ats_compared_close(&made);
    return rc;
}

void ats_compared_close(ats_compared *compared)
{
    ats_comparison_free(compared->comparison);
    ats_suite_free(compared->suite);
    ats_arena_fini(&compared->arena);
    *compared = (ats_compared){.suite = NULL};
}
