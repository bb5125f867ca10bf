#include <jansson.h>
#include <math.h>

#include "cli/explain_print.h"

/* JSON has no NaN and no infinity: both are null. */
static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *route_json(const ats_explain_route *route)
{
    return json_pack("{s:I, s:o, s:o, s:o}", "best_key", (json_int_t)route->best_key, "best_logit",
                     number(route->best), "lse", number(route->lse), "mass", number(route->mass));
}

static json_t *span_json(const ats_explain_span *span)
{
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "span", span->name, "rows",
                     (json_int_t)span->rows, "base", route_json(&span->base), "variant",
                     route_json(&span->variant), "log_mass_shift", number(span->log_mass_shift),
                     "own_logit_shift", number(span->own_logit_shift));
}

static json_t *key_json(const ats_explain_key *key)
{
    return json_pack("{s:I, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:I}", "key",
                     (json_int_t)key->key, "position", (json_int_t)key->position, "token",
                     key->text, "span", key->span, "logit_base", number(key->logit_base),
                     "weight_base", number(key->weight_base), "logit", number(key->logit), "weight",
                     number(key->weight), "donor", key->donor, "donor_row",
                     (json_int_t)key->donor_row);
}

static json_t *law_json(const ats_law *law)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:b}", "law", law->name, "statement", law->statement,
                     "residual", number(law->residual), "bound", number(law->bound), "holds",
                     ats_law_holds(law));
}

static json_t *stored_json(const ats_explain_stored *s)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "name", s->name, "stored", number(s->stored),
                     "computed", number(s->computed), "bound", number(s->bound));
}

static void add_lists(json_t *root, const ats_explanation *e)
{
    json_t *spans = json_array(), *top = json_array(), *inserted = json_array(),
           *parts = json_array(), *laws = json_array(), *stored = json_array();
    for (int64_t i = 0; i < e->n_spans; i++) json_array_append_new(spans, span_json(&e->spans[i]));
    for (int64_t i = 0; i < e->n_top; i++) json_array_append_new(top, key_json(&e->top[i]));
    for (int64_t i = 0; i < e->n_inserted; i++)
        json_array_append_new(inserted, key_json(&e->inserted[i]));
    for (int64_t i = 0; i < ATS_N_PARTS; i++)
        json_array_append_new(parts, json_pack("{s:s, s:o, s:o}", "part", e->parts[i].name, "norm",
                                               number(e->parts[i].norm), "share",
                                               number(e->parts[i].share)));
    for (int64_t i = 0; i < e->n_laws; i++)
        if (e->laws[i].rows > 0) json_array_append_new(laws, law_json(&e->laws[i]));
    for (int64_t i = 0; i < e->n_stored; i++)
        json_array_append_new(stored, stored_json(&e->stored[i]));
    json_object_set_new(root, "spans", spans);
    json_object_set_new(root, "top_keys", top);
    json_object_set_new(root, "inserted", inserted);
    json_object_set_new(root, "delta", parts);
    json_object_set_new(root, "laws", laws);
    json_object_set_new(root, "stored", stored);
}

ats_code ats_explain_json(FILE *stream, const ats_explanation *e, bool rows, ats_err *err)
{
    json_t *root = json_pack(
        "{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:s, s:I}", "case",
        (json_int_t)e->case_index, "sample", e->sample, "variant", e->variant, "kind", e->kind,
        "arm", e->arm, "positions", e->mode, "suite", e->suite, "capture", e->capture, "layer",
        (json_int_t)e->layer, "head", (json_int_t)e->head, "probe", (json_int_t)e->probe,
        "probe_position", (json_int_t)e->probe_position, "dose", number(e->dose), "script",
        e->script, "query_delta", (json_int_t)e->query_delta);
    json_t *numbers =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "scale",
                  number(e->scale), "lse_base", number(e->lse_base), "lse", number(e->lse),
                  "null_mass_base", number(e->null_base), "null_mass", number(e->null_variant),
                  "tv", number(e->tv), "intrusion", number(e->intrusion), "removal",
                  number(e->removal), "output_cosine", number(e->output_cosine), "output_change",
                  number(e->output_change), "parts_residual", number(e->parts_residual));
    if (root == NULL || json_object_update(root, numbers) != 0) {
        json_decref(root);
        json_decref(numbers);
        return ats_fail(err, ATS_E_MEMORY, "out of memory for the JSON explanation");
    }
    json_decref(numbers);
    add_lists(root, e);
    json_object_set_new(root, "edit", ats_explain_edit_json(e, rows));
    const int status = json_dumpf(root, stream, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    json_decref(root);
    if (status != 0) return ats_fail(err, ATS_E_IO, "the JSON explanation could not be printed");
    fprintf(stream, "\n");
    return ATS_OK;
}
