#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/import_header.h"

enum { LISTED_MAX = ATS_YAML_VISITS };

bool ats_import_read_axes(ats_reader *reader, const ats_node *node, const ats_field *field,
                          void *target)
{
    static const char *const words[] = {"head", "token", "dim", "batch", NULL};
    ats_import_header *header = target;
    int seen[4] = {0};
    if (node->kind != ATS_NODE_LIST || node->count > ATS_IMPORT_AXES) {
        ats_issue_at(reader->issues, node, "E-kind",
                     "%s: a list of axes is wanted here, such as [head, token, dim]", field->name);
        return false;
    }
    for (int64_t i = 0; i < node->count; i++) {
        const char *word = NULL;
        if (!ats_read_word(reader, node->items[i], field->name, words, &word)) return false;
        int axis = 0;
        while (words[axis] != word) axis++;
        header->axes[i] = (ats_import_axis)axis;
        seen[axis]++;
    }
    header->n_axes = node->count;
    if (seen[ATS_IMPORT_HEAD] == 1 && seen[ATS_IMPORT_TOKEN] == 1 && seen[ATS_IMPORT_DIM] == 1)
        return true;
    ats_issue_at(reader->issues, node, "E-layout",
                 "layout: head, token and dim are each named once; batch stands for axes of "
                 "extent 1");
    return false;
}

bool ats_import_read_ints(ats_reader *reader, const ats_node *node, const ats_field *field,
                          void *target)
{
    ats_import_ints *out = target;
    const ats_node *const one[] = {node};
    const bool list = node->kind == ATS_NODE_LIST;
    const ats_node *const *nodes = list ? node->items : one;
    const int64_t count = list ? node->count : 1;
    int64_t *items = NULL;
    if (count == 0) {
        ats_issue_at(reader->issues, node, "E-kind", "%s: the list is empty", field->name);
        return false;
    }
    if (reader->rc == ATS_OK) reader->rc = ATS_NEW(reader->arena, count, &items, reader->err);
    if (reader->rc != ATS_OK) return false;
    for (int64_t i = 0; i < count; i++)
        if (!ats_read_int(reader, nodes[i], field->name, INT64_MIN, INT64_MAX, &items[i]))
            return false;
    *out = (ats_import_ints){.count = count, .items = items};
    return true;
}

bool ats_import_read_scale(ats_reader *reader, const ats_node *node, const ats_field *field,
                           void *target)
{
    if (node->kind == ATS_NODE_SCALAR && strcmp(node->text, "1/sqrt(d_qk)") == 0) {
        *(double *)target = (double)NAN;
        return true;
    }
    return ats_read_real(reader, node, field->name, (double)NAN, (double)NAN, false, target);
}

/* A list of mappings with at least one; makes room for its items. */
static bool open_list(ats_reader *reader, const ats_node *node, const ats_field *field, size_t size,
                      bool may_be_empty, void **items)
{
    if (node->kind != ATS_NODE_LIST || (node->count == 0 && !may_be_empty)) {
        ats_issue_at(reader->issues, node, "E-kind", "%s: %s is wanted here", field->name,
                     field->form);
        return false;
    }
    if (reader->rc == ATS_OK)
        reader->rc = ats_arena_zalloc(reader->arena, node->count, size, items, reader->err);
    return reader->rc == ATS_OK;
}

/* Layer numbers are from 0 on and each is described once. */
static bool check_numbers(ats_reader *reader, const ats_import_layer *layers, int64_t at)
{
    const ats_import_layer *entry = &layers[at];
    for (int64_t i = 0; i < entry->layers.count; i++) {
        const int64_t number = entry->layers.items[i];
        bool twice = false;
        for (int64_t e = 0; e <= at; e++)
            for (int64_t j = 0; j < layers[e].layers.count && (e < at || j < i); j++)
                twice |= layers[e].layers.items[j] == number;
        if (number >= 0 && number < 100000 && !twice) continue;
        ats_issue_at(reader->issues, ats_node_get(entry->node, "layer"), "E-layer",
                     twice ? "layer %lld is described twice"
                           : "layer %lld: layer numbers are from 0 to 99,999",
                     (long long)number);
        return false;
    }
    return true;
}

bool ats_import_read_layers(ats_reader *reader, const ats_node *node, const ats_field *field,
                            void *target)
{
    enum { MOST = 4096 };
    ats_import_header *header = target;
    void *items = NULL;
    if (!open_list(reader, node, field, sizeof *header->layers, false, &items)) return false;
    header->layers = items;
    header->n_layers = node->count;
    bool good = true;
    for (int64_t i = 0; i < node->count; i++) {
        ats_import_layer *entry = &header->layers[i];
        entry->node = node->items[i];
        const bool read = ats_fields_read(reader, &ats_import_layer_table, entry->node, entry);
        good &= read && entry->layers.count <= MOST && check_numbers(reader, header->layers, i);
    }
    return good;
}

static bool check_ids(ats_reader *reader, const ats_import_header *header)
{
    for (int64_t i = 1; i < header->n_samples; i++)
        for (int64_t j = 0; j < i; j++)
            if (strcmp(header->samples[i].id, header->samples[j].id) == 0) {
                ats_issue_at(reader->issues, header->samples[i].node, "E-duplicate-id",
                             "two samples have the id '%.60s'; ids are unique",
                             header->samples[i].id);
                return false;
            }
    return true;
}

bool ats_import_read_samples(ats_reader *reader, const ats_node *node, const ats_field *field,
                             void *target)
{
    enum { MOST = 10000 };
    ats_import_header *header = target;
    void *items = NULL;
    if (node->count > MOST) {
        ats_issue_at(reader->issues, node, "E-kind", "samples: more than 10,000 items");
        return false;
    }
    if (!open_list(reader, node, field, sizeof *header->samples, false, &items)) return false;
    header->samples = items;
    header->n_samples = node->count;
    bool good = true;
    for (int64_t i = 0; i < node->count; i++) {
        header->samples[i].node = node->items[i];
        good &=
            ats_fields_read(reader, &ats_import_sample_table, node->items[i], &header->samples[i]);
    }
    return good && check_ids(reader, header);
}

bool ats_import_read_spans(ats_reader *reader, const ats_node *node, const ats_field *field,
                           void *target)
{
    ats_import_sample *sample =
        (ats_import_sample *)(void *)((char *)target - offsetof(ats_import_sample, n_spans));
    void *items = NULL;
    if (!open_list(reader, node, field, sizeof *sample->spans, true, &items)) return false;
    sample->spans = items;
    sample->n_spans = node->count;
    bool good = true;
    for (int64_t i = 0; i < node->count; i++) {
        ats_span *span = &sample->spans[i];
        const bool read = ats_fields_read(reader, &ats_import_span_table, node->items[i], span);
        if (read && span->role == NULL) span->role = span->name;
        if (read && span->start >= span->stop) {
            ats_issue_at(reader->issues, node->items[i], "E-span",
                         "span '%.60s' is [%lld, %lld), which is empty", span->name,
                         (long long)span->start, (long long)span->stop);
            good = false;
        }
        good &= read;
    }
    return good;
}

bool ats_import_read_probes(ats_reader *reader, const ats_node *node, const ats_field *field,
                            void *target)
{
    ats_import_sample *sample =
        (ats_import_sample *)(void *)((char *)target - offsetof(ats_import_sample, n_probes));
    void *items = NULL;
    if (!open_list(reader, node, field, sizeof *sample->probes, false, &items)) return false;
    sample->probes = items;
    sample->n_probes = node->count;
    bool good = true;
    for (int64_t i = 0; i < node->count; i++) {
        ats_probe *probe = &sample->probes[i];
        probe->position = INT64_MIN;
        const bool read = ats_fields_read(reader, &ats_import_probe_table, node->items[i], probe);
        if (read && probe->index < 0 && probe->position == INT64_MIN) {
            ats_issue_at(reader->issues, node->items[i], "E-missing-key",
                         "a probe with index -1 lacks the key 'position'");
            good = false;
        }
        good &= read;
    }
    return good;
}
