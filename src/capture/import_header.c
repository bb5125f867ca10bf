#include "capture/import_header.h"

#include <math.h>
#include <string.h>

static void refuse(ats_reader *reader, const ats_node *node, const char *key, const char *what)
{
    const ats_node *at = ats_node_get(node, key);
    ats_issue_at(reader->issues, at != NULL ? at : node, "E-contradiction", "%s", what);
}

/* What one key says against another; a section that is absent has no layout. */
static void check_layer(ats_reader *reader, const ats_import_layer *entry)
{
    const ats_import_rope *rope = &entry->rope;
    const ats_node *node = ats_node_get(entry->node, "rope");
    const bool rotary = rope->layout != NULL;
    const bool says_rope = entry->positions != NULL && strcmp(entry->positions, "rope") == 0;
    if (!rotary && entry->positions == NULL)
        refuse(reader, entry->node, "positions",
               "this layer has neither a section 'rope' nor 'positions' (alibi, none or absolute)");
    if (rotary && entry->positions != NULL && !says_rope)
        refuse(reader, entry->node, "positions",
               "positions is not rope, but there is a section 'rope'");
    if (!rotary && says_rope)
        refuse(reader, entry->node, "positions",
               "positions is rope, and the section 'rope' is missing");
    if (!rotary) return;
    if (rope->rotary_dim > 0 && rope->partial_rotary_factor > 0)
        refuse(reader, node, "rotary_dim",
               "rotary_dim and partial_rotary_factor say the same; give one");
    if (strcmp(rope->type, "stored") != 0 && ats_node_get(node, "rope_theta") == NULL)
        refuse(reader, node, "rope_theta",
               "rope lacks the key 'rope_theta', the base of the frequencies (often 10000)");
}

/* {sample} is needed as soon as two samples would name one tensor. */
static void check_names(ats_reader *reader, const ats_import_header *header, const ats_node *root)
{
    const ats_import_names *names = &header->names;
    const struct {
        const char *key, *pattern;
    } needed[] = {{"q", names->q}, {"k", names->k}, {"v", names->v}};
    const ats_node *at = ats_node_get(root, "names");
    if (header->n_samples < 2) return;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (strstr(needed[i].pattern, "{sample}") != NULL) continue;
        const ats_node *key = ats_node_get(at, needed[i].key);
        ats_issue_at(reader->issues,
                     key != NULL  ? key
                     : at != NULL ? at
                                  : root,
                     "E-names",
                     "there are %lld samples, but names.%s is '%.100s' for each of them; put "
                     "{sample} into it",
                     (long long)header->n_samples, needed[i].key, needed[i].pattern);
    }
}

ats_code ats_import_header_read(const char *path, ats_arena *arena, ats_import_header *out,
                                ats_err *err)
{
    ats_issues *issues = NULL;
    ats_import_header header = {.path = path};
    const ats_node *root = NULL;
    ats_code rc;
    ATS_TRY(ATS_NEW0(arena, 1, &issues, err));
    ats_reader reader = {.arena = arena, .issues = issues, .err = err};
    ATS_TRY(ats_yaml_load(arena, path, issues, &root, err));
    if (root == NULL && issues->count == 0) {
        rc = ats_fail(err, ATS_E_INPUT, "%s: is empty; an import header is wanted (docs/import.md)",
                      path);
        goto out;
    }
    if (root != NULL && ats_fields_read(&reader, &ats_import_table, root, &header)) {
        for (int64_t i = 0; i < header.n_layers; i++) check_layer(&reader, &header.layers[i]);
        check_names(&reader, &header, root);
    }
    ATS_TRY(reader.rc);
    ATS_TRY(ats_issues_report(issues, ATS_E_INPUT, err));
    *out = header;
out:
    return rc;
}

ats_code ats_import_reference(ats_arena *arena, const char **out, ats_err *err)
{
    const struct {
        const ats_table *table;
        const char *path;
    } parts[] = {{&ats_import_table, ""},
                 {&ats_import_layer_table, "layers"},
                 {&ats_import_sample_table, "samples"},
                 {&ats_import_probe_table, "samples.probes"},
                 {&ats_import_span_table, "samples.spans"}};
    ats_text text = {.arena = arena, .err = err};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ats_fields_markdown(&text, parts[i].table, parts[i].path);
    return ats_text_done(&text, out);
}
