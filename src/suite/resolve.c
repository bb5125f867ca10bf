#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "suite/draft.h"

static void write_entry(ats_text *text, const char *key, const ats_node *value)
{
    ats_text_add(text, "    %s: ", key);
    ats_node_write(text, value);
    ats_text_add(text, "\n");
}

static bool is_given(const ats_perturbation_draft *draft, const ats_param_def *def)
{
    for (int64_t i = 0; i < draft->grid.count; i++) {
        const ats_axis *axis = &draft->grid.axes[i];
        const ats_point *point = &axis->points[0];
        for (int64_t j = 0; j < point->count; j++)
            if (point->assigns[j].param >= 0 &&
                def == &draft->built.family->params[point->assigns[j].param])
                return true;
    }
    return false;
}

/* As a comment: written as keys they would become part of the variants' ids. */
static void write_defaults(ats_text *text, const ats_perturbation_draft *draft)
{
    const ats_family *family = draft->built.family;
    bool first = true;
    for (int64_t i = 0; i < family->n_params; i++) {
        const ats_param_def *def = &family->params[i];
        const bool number = def->type == ATS_PARAM_INT || def->type == ATS_PARAM_REAL;
        if (def->required || is_given(draft, def) || (!number && def->text == NULL)) continue;
        if (number && def->number != def->number) continue;
        char value[32];
        if (number) ats_format_real(def->number, value);
        ats_text_add(text, "%s%s=%s", first ? "    # defaults: " : ", ", def->name,
                     number ? value : def->text);
        first = false;
    }
    if (!first) ats_text_add(text, "\n");
}

void ats_perturbations_write(ats_text *text, const void *base)
{
    const ats_draft *draft = base;
    ats_text_add(text, "perturbations:\n");
    for (int64_t i = 0; i < draft->n_perturbations; i++) {
        const ats_perturbation_draft *item = &draft->perturbations[i];
        ats_text_add(text, "  - name: ");
        ats_text_scalar(text, item->built.name);
        ats_text_add(text, "\n    kind: %s\n", item->built.family->kind);
        for (int64_t j = 0; j < item->grid.count; j++)
            write_entry(text, item->grid.axes[j].key, item->grid.axes[j].node);
        if (item->built.family->has_control)
            ats_text_add(text, "    control: %s\n", item->built.control ? "true" : "false");
        if (item->built.breakdown_search) ats_text_add(text, "    breakdown_search: true\n");
        ats_text_add(text, "    replicates: %lld\n", (long long)item->built.replicates);
        if (item->exclude_node != NULL) write_entry(text, "exclude", item->exclude_node);
        if (item->include_node != NULL) write_entry(text, "include", item->include_node);
        write_defaults(text, item);
    }
}

void ats_gates_write(ats_text *text, const void *base)
{
    const ats_draft *draft = base;
    if (draft->n_gates == 0) return;
    ats_text_add(text, "gates:\n");
    for (int64_t i = 0; i < draft->n_gates; i++) {
        const ats_gate_draft *gate = &draft->gates[i];
        for (int64_t j = 0, n = 0; j < ats_gate_table.count; j++) {
            const ats_field *field = &ats_gate_table.fields[j];
            const ats_node *node = ats_node_get(gate->node, field->name);
            if (node == NULL && field->standard == NULL) continue;
            ats_text_add(text, "%s%s: ", n++ == 0 ? "  - " : "    ", field->name);
            if (node != NULL)
                ats_node_write(text, node);
            else
                ats_text_add(text, "%s", field->standard);
            ats_text_add(text, "\n");
        }
    }
}

ats_code ats_suite_resolve(ats_reader *reader, ats_draft *draft)
{
    ats_code rc;
    ats_text full = {.arena = reader->arena, .err = reader->err}, identity = full;
    const char *text = NULL;
    ats_fields_write(&full, &ats_suite_table, draft->root, draft, 0, false);
    ATS_TRY(ats_text_done(&full, &draft->suite.resolved));
    ats_fields_write(&identity, &ats_suite_table, draft->root, draft, 0, true);
    ATS_TRY(ats_text_done(&identity, &text));
    const XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    snprintf(draft->suite.hash, sizeof draft->suite.hash, "%016llx%016llx",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
out:
    return rc;
}
