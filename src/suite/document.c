#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/nearest.h"
#include "suite/draft.h"

enum { INCLUDES = 64, INCLUDE_DEPTH = 16 };

typedef struct opened {
    dev_t device;
    ino_t inode;
} opened;

typedef struct loader {
    ats_reader *reader;
    opened stack[INCLUDE_DEPTH];
    int depth, files;
} loader;

ats_code ats_document_path(ats_reader *reader, const ats_node *node, const char *path,
                           const char **out)
{
    const char *slash = node->source->is_file ? strrchr(node->source->name, '/') : NULL;
    if (path[0] == '/' || slash == NULL) {
        *out = path;
        return ATS_OK;
    }
    return ats_arena_printf(reader->arena, out, reader->err, "%.*s/%s",
                            (int)(slash - node->source->name), node->source->name, path);
}

static ats_code copy_map(ats_reader *reader, const ats_node *map, int64_t extra, ats_node **out,
                         ats_entry **entries)
{
    ats_code rc;
    ats_node *node = NULL;
    ATS_TRY(ATS_NEW(reader->arena, 1, &node, reader->err));
    ATS_TRY(ATS_NEW(reader->arena, map->count + extra, entries, reader->err));
    *node = *map;
    if (map->count > 0) memcpy(*entries, map->entries, (size_t)map->count * sizeof **entries);
    node->entries = *entries;
    *out = node;
out:
    return rc;
}

/* Mappings are joined key by key at every depth; over's lists and values win. */
static ats_code merge(ats_reader *reader, const ats_node *under, const ats_node *over,
                      const ats_node **out)
{
    ats_code rc = ATS_OK;
    ats_node *node = NULL;
    ats_entry *entries = NULL;
    if (under == NULL || under->kind != ATS_NODE_MAP || over->kind != ATS_NODE_MAP) {
        *out = over;
        return ATS_OK;
    }
    ATS_TRY(copy_map(reader, over, under->count, &node, &entries));
    for (int64_t i = 0; i < over->count; i++)
        ATS_TRY(merge(reader, ats_node_get(under, over->entries[i].key->text),
                      over->entries[i].value, &entries[i].value));
    for (int64_t i = 0; i < under->count; i++)
        if (ats_node_get(over, under->entries[i].key->text) == NULL)
            entries[node->count++] = under->entries[i];
    *out = node;
out:
    return rc;
}

static ats_code resolve_includes(loader *l, const ats_node *root, const ats_node **out);

static ats_code load_include(loader *l, const ats_node *at, const ats_node **out)
{
    ats_reader *reader = l->reader;
    const char *path = NULL;
    struct stat info;
    ats_code rc = ats_document_path(reader, at, at->text, &path);
    if (rc != ATS_OK) return rc;
    if (stat(path, &info) != 0) {
        ats_issue_at(reader->issues, at, "E-include", "included file %s cannot be opened", path);
        return ATS_OK;
    }
    for (int i = 0; i < l->depth; i++)
        if (l->stack[i].device == info.st_dev && l->stack[i].inode == info.st_ino) {
            ats_issue_at(reader->issues, at, "E-include-cycle",
                         "%s includes itself through this line; take it away", path);
            return ATS_OK;
        }
    if (l->depth == INCLUDE_DEPTH || ++l->files > INCLUDES) {
        ats_issue_at(reader->issues, at, "E-include",
                     "more than %d files, or %d levels, of includes", INCLUDES, INCLUDE_DEPTH);
        return ATS_OK;
    }
    l->stack[l->depth++] = (opened){.device = info.st_dev, .inode = info.st_ino};
    const ats_node *root = NULL;
    rc = ats_yaml_load(reader->arena, path, reader->issues, &root, reader->err);
    if (rc == ATS_OK && root != NULL) rc = resolve_includes(l, root, out);
    l->depth--;
    return rc;
}

static ats_code resolve_includes(loader *l, const ats_node *root, const ats_node **out)
{
    ats_code rc = ATS_OK;
    const ats_node *include = ats_node_get(root, "include"), *under = NULL;
    ats_strings paths;
    *out = root;
    if (include == NULL || !ats_read_texts(l->reader, include, "include", &paths))
        return l->reader->rc;
    for (int64_t i = 0; i < paths.count; i++) {
        const ats_node *at = include->kind == ATS_NODE_LIST ? include->items[i] : include;
        const ats_node *part = NULL;
        ATS_TRY(load_include(l, at, &part));
        if (part != NULL) ATS_TRY(merge(l->reader, under, part, &under));
    }
    if (under == NULL) goto out;
    ATS_TRY(merge(l->reader, under, root, out));
out:
    return rc;
}

/* Item of a list of mappings whose `name` begins the path, the longest one; -1: none. */
static int64_t named_item(const ats_node *list, const char *path, size_t *length)
{
    int64_t found = -1;
    *length = 0;
    for (int64_t i = 0; i < list->count; i++) {
        const ats_node *name = ats_node_get(list->items[i], "name");
        if (name == NULL) name = ats_node_get(list->items[i], "kind");
        if (name == NULL || name->kind != ATS_NODE_SCALAR) continue;
        const size_t n = strlen(name->text);
        if (n <= *length || strncmp(path, name->text, n) != 0) continue;
        if (path[n] != '.' && path[n] != '\0') continue;
        *length = n;
        found = i;
    }
    return found;
}

static void issue_no_item(ats_reader *reader, const ats_node *value, const ats_node *list,
                          const char *path)
{
    enum { MOST = 64 };
    const char *names[MOST + 1] = {NULL};
    for (int64_t i = 0, n = 0; i < list->count && n < MOST; i++) {
        const ats_node *name = ats_node_get(list->items[i], "name");
        if (name != NULL && name->kind == ATS_NODE_SCALAR) names[n++] = name->text;
    }
    char word[80];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(path, "."), path);
    const char *near = ats_nearest(word, names);
    ats_issue_at(reader->issues, value, "E-override",
                 "no item of this list is named '%s'%s%s%s; the path is "
                 "perturbations.NAME.KEY=VALUE",
                 word, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                 near != NULL ? "'?" : "");
}

static ats_code override(ats_reader *reader, const ats_node *node, const ats_node *value,
                         const char *path, const ats_node **out);

static ats_code override_map(ats_reader *reader, const ats_node *map, const ats_node *value,
                             const char *path, const ats_node **out)
{
    ats_code rc;
    ats_node *node = NULL, *key = NULL;
    ats_entry *entries = NULL;
    const size_t length = strcspn(path, ".");
    const char *rest = path[length] == '.' ? path + length + 1 : path + length;
    ATS_TRY(copy_map(reader, map, 1, &node, &entries));
    for (int64_t i = 0; i < map->count; i++) {
        const char *name = entries[i].key->text;
        if (strlen(name) != length || strncmp(name, path, length) != 0) continue;
        ATS_TRY(override(reader, entries[i].value, value, rest, &entries[i].value));
        *out = node;
        goto out;
    }
    const char *text = NULL;
    ATS_TRY(ats_arena_printf(reader->arena, &text, reader->err, "%.*s", (int)length, path));
    ATS_TRY(ATS_NEW(reader->arena, 1, &key, reader->err));
    *key = *value;
    key->kind = ATS_NODE_SCALAR;
    key->text = text;
    key->count = 0;
    ats_node *empty = NULL;
    ATS_TRY(ATS_NEW(reader->arena, 1, &empty, reader->err));
    *empty = *value;
    empty->kind = ATS_NODE_MAP;
    empty->count = 0;
    ats_entry *entry = &entries[node->count++];
    entry->key = key;
    ATS_TRY(override(reader, empty, value, rest, &entry->value));
    *out = node;
out:
    return rc;
}

static ats_code override_list(ats_reader *reader, const ats_node *list, const ats_node *value,
                              const char *path, const ats_node **out)
{
    ats_code rc = ATS_OK;
    ats_node *node = NULL;
    const ats_node **items = NULL;
    size_t length;
    const int64_t at = named_item(list, path, &length);
    if (at < 0) {
        issue_no_item(reader, value, list, path);
        *out = list;
        return ATS_OK;
    }
    ATS_TRY(ATS_NEW(reader->arena, 1, &node, reader->err));
    ATS_TRY(ATS_NEW(reader->arena, list->count, &items, reader->err));
    memcpy(items, list->items, (size_t)list->count * sizeof *items);
    const char *rest = path[length] == '.' ? path + length + 1 : path + length;
    ATS_TRY(override(reader, list->items[at], value, rest, &items[at]));
    *node = *list;
    node->items = items;
    *out = node;
out:
    return rc;
}

/* The tree with value at path; what is not on the path is shared. */
static ats_code override(ats_reader *reader, const ats_node *node, const ats_node *value,
                         const char *path, const ats_node **out)
{
    if (path[0] == '\0') {
        *out = value;
        return ATS_OK;
    }
    if (node->kind == ATS_NODE_MAP) return override_map(reader, node, value, path, out);
    if (node->kind == ATS_NODE_LIST) return override_list(reader, node, value, path, out);
    ats_issue_at(reader->issues, value, "E-override",
                 "'%s' leads into '%.60s', which is a single value", path, node->text);
    *out = node;
    return ATS_OK;
}

static ats_code apply_override(ats_reader *reader, const char *text, const ats_node **root)
{
    ats_code rc;
    const char *equals = strchr(text, '='), *name = NULL, *path = NULL;
    const ats_node *value = NULL;
    ats_source *source = NULL;
    if (equals == NULL || equals == text || equals[1] == '\0') {
        ATS_TRY(ats_source_new(reader->arena, "--set", text, (int64_t)strlen(text), false, &source,
                               reader->err));
        ats_issue_add(reader->issues, source, 1, 1, "E-override",
                      "'%.80s' should read path=value, as in --set "
                      "perturbations.NAME.count=[1,2]",
                      text);
        goto out;
    }
    ATS_TRY(
        ats_arena_printf(reader->arena, &path, reader->err, "%.*s", (int)(equals - text), text));
    ATS_TRY(ats_arena_printf(reader->arena, &name, reader->err, "--set %s", path));
    ATS_TRY(ats_yaml_parse(reader->arena, name, equals + 1, (int64_t)strlen(equals + 1),
                           reader->issues, &value, reader->err));
    if (value == NULL) goto out;
    if (strcmp(path, "include") == 0) {
        ats_issue_at(reader->issues, value, "E-override", "'include' stands in the file alone");
        goto out;
    }
    /* Depth along the path and in the value: each component is one level at most. */
    int64_t levels = value->height;
    for (const char *c = path; *c != '\0'; c++) levels += *c == '.';
    if (levels > ATS_YAML_DEPTH) {
        ats_issue_at(reader->issues, value, "E-too-deep", "more than 64 levels of nesting");
        goto out;
    }
    ATS_TRY(override(reader, *root, value, path, root));
out:
    return rc;
}

ats_code ats_document_load(ats_reader *reader, const ats_source *source,
                           const char *const *overrides, int64_t n_overrides, const ats_node **out)
{
    ats_code rc;
    loader l = {.reader = reader};
    struct stat info;
    const ats_node *root = NULL;
    if (source->is_file && stat(source->name, &info) == 0)
        l.stack[l.depth++] = (opened){.device = info.st_dev, .inode = info.st_ino};
    const int64_t before = reader->issues->count;
    ATS_TRY(ats_yaml_parse_source(reader->arena, source, reader->issues, &root, reader->err));
    if (root == NULL) {
        if (reader->issues->count == before)
            ats_issue_add(reader->issues, source, 1, 1, "E-empty", "the suite is empty");
        goto out;
    }
    if (root->kind != ATS_NODE_MAP) {
        ats_issue_at(reader->issues, root, "E-kind", "a suite is a mapping, this is %s",
                     ats_node_kind_name(root->kind));
        goto out;
    }
    ATS_TRY(resolve_includes(&l, root, &root));
    for (int64_t i = 0; i < n_overrides; i++) ATS_TRY(apply_override(reader, overrides[i], &root));
    *out = root;
out:
    return rc;
}
