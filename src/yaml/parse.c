#include "yaml/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { ANCHORS = 1000 };

/* A collection that is still open. */
typedef struct frame {
    ats_node *node;
    const ats_node *key; /* of a map: the key whose value comes next */
    const ats_node **items;
    ats_entry *entries;
    int64_t room;
} frame;

typedef struct anchor {
    const char *name;
    const ats_node *node;
    bool open;
} anchor;

typedef struct builder {
    ats_arena *arena;
    ats_issues *issues;
    ats_err *err;
    const ats_source *source;
    frame stack[ATS_YAML_DEPTH];
    int depth;
    anchor *anchors; /* [ANCHORS] */
    int64_t n_anchors;
    int64_t visits;
    const ats_node *root;
    bool failed; /* an issue after which going on makes no sense */
} builder;

static void fail_at(builder *b, yaml_mark_t mark, const char *code, const char *text)
{
    ats_issue_add(b->issues, b->source, (int64_t)mark.line + 1, (int64_t)mark.column + 1, code,
                  "%s", text);
    b->failed = true;
}

static void count_visits(builder *b, yaml_mark_t mark, int64_t visits)
{
    b->visits += visits;
    if (b->visits > ATS_YAML_VISITS && !b->failed)
        fail_at(b, mark, "E-too-big",
                "more than 100,000 values, aliases counted as all they stand for; write fewer");
}

static ats_code new_node(builder *b, ats_node_kind kind, yaml_mark_t mark, ats_node **out)
{
    ats_node *node = NULL;
    ats_code rc = ATS_NEW0(b->arena, 1, &node, b->err);
    if (rc != ATS_OK) return rc;
    node->kind = kind;
    node->source = b->source;
    node->line = (int64_t)mark.line + 1;
    node->column = (int64_t)mark.column + 1;
    node->visits = node->height = 1;
    count_visits(b, mark, 1);
    *out = node;
    return ATS_OK;
}

static ats_code grow(builder *b, frame *top)
{
    ats_code rc;
    const int64_t room = top->room == 0 ? 8 : 2 * top->room, count = top->node->count;
    if (top->node->kind == ATS_NODE_LIST) {
        const ats_node **items = NULL;
        ATS_TRY(ATS_NEW(b->arena, room, &items, b->err));
        if (count > 0) memcpy(items, top->items, (size_t)count * sizeof *items);
        top->items = items;
    } else {
        ats_entry *entries = NULL;
        ATS_TRY(ATS_NEW(b->arena, room, &entries, b->err));
        if (count > 0) memcpy(entries, top->entries, (size_t)count * sizeof *entries);
        top->entries = entries;
    }
    top->room = room;
out:
    return rc;
}

static bool legal_key(builder *b, const ats_node *key)
{
    if (key->kind != ATS_NODE_SCALAR) {
        ats_issue_at(b->issues, key, "E-key-kind", "a key must be a single word, this is %s",
                     ats_node_kind_name(key->kind));
        b->failed = true;
        return false;
    }
    if (!key->quoted && strcmp(key->text, "<<") == 0)
        ats_issue_at(b->issues, key, "E-merge-key",
                     "merge keys (<<) are not read; write the keys out, or use 'include:'");
    return true;
}

/* Puts a finished node (or an alias' target) where it belongs. */
static ats_code place_node(builder *b, const ats_node *node)
{
    if (b->depth == 0) {
        b->root = node;
        return ATS_OK;
    }
    frame *top = &b->stack[b->depth - 1];
    top->node->visits += node->visits;
    if (top->node->height <= node->height) top->node->height = node->height + 1;
    if (top->node->kind == ATS_NODE_MAP && top->key == NULL) {
        if (legal_key(b, node)) top->key = node;
        return ATS_OK;
    }
    if (top->node->count == top->room) {
        const ats_code rc = grow(b, top);
        if (rc != ATS_OK) return rc;
    }
    if (top->node->kind == ATS_NODE_MAP)
        top->entries[top->node->count++] = (ats_entry){.key = top->key, .value = node};
    else
        top->items[top->node->count++] = node;
    top->key = NULL;
    return ATS_OK;
}

static ats_code add_anchor(builder *b, const yaml_char_t *name, const ats_node *node,
                           yaml_mark_t mark)
{
    if (name == NULL) return ATS_OK;
    ats_code rc = ATS_OK;
    if (b->anchors == NULL) ATS_TRY(ATS_NEW(b->arena, ANCHORS, &b->anchors, b->err));
    if (b->n_anchors == ANCHORS) {
        fail_at(b, mark, "E-too-big", "more than 1,000 anchors; write fewer");
        goto out;
    }
    anchor *new = &b->anchors[b->n_anchors];
    *new = (anchor){.node = node, .open = node->kind != ATS_NODE_SCALAR};
    ATS_TRY(ats_arena_strdup(b->arena, (const char *)name, &new->name, b->err));
    b->n_anchors++;
out:
    return rc;
}

static ats_code take_alias(builder *b, const char *name, yaml_mark_t mark)
{
    char text[256];
    for (int64_t i = b->n_anchors - 1; i >= 0; i--) {
        const anchor *found = &b->anchors[i];
        if (strcmp(found->name, name) != 0) continue;
        if (found->open) {
            snprintf(text, sizeof text, "alias '*%.80s' stands inside what it names: a cycle",
                     name);
            fail_at(b, mark, "E-alias-cycle", text);
            return ATS_OK;
        }
        count_visits(b, mark, found->node->visits);
        if (b->depth + found->node->height > ATS_YAML_DEPTH)
            fail_at(b, mark, "E-too-deep", "more than 64 levels of nesting through this alias");
        return b->failed ? ATS_OK : place_node(b, found->node);
    }
    snprintf(text, sizeof text, "alias '*%.80s' names no anchor; define it earlier as '&%.80s'",
             name, name);
    fail_at(b, mark, "E-unknown-alias", text);
    return ATS_OK;
}

static void refuse_tag(builder *b, const yaml_char_t *tag, yaml_mark_t mark)
{
    if (tag == NULL) return;
    ats_issue_add(b->issues, b->source, (int64_t)mark.line + 1, (int64_t)mark.column + 1, "E-tag",
                  "tag '%.80s' is not read: the field decides the type; remove the tag",
                  (const char *)tag);
}

static ats_code take_scalar(builder *b, const yaml_event_t *event)
{
    ats_code rc;
    ats_node *node = NULL;
    const size_t length = event->data.scalar.length;
    const char *value = (const char *)event->data.scalar.value;
    refuse_tag(b, event->data.scalar.tag, event->start_mark);
    ATS_TRY(new_node(b, ATS_NODE_SCALAR, event->start_mark, &node));
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (memchr(value, 0, length) != NULL) {
        fail_at(b, event->start_mark, "E-nul", "the text holds a NUL character; remove it");
        goto out;
    }
    ATS_TRY(ats_arena_strdup(b->arena, value, &node->text, b->err));
    ATS_TRY(add_anchor(b, event->data.scalar.anchor, node, event->start_mark));
    ATS_TRY(place_node(b, node));
out:
    return rc;
}

static ats_code open_collection(builder *b, ats_node_kind kind, const yaml_char_t *name,
                                const yaml_char_t *tag, yaml_mark_t mark)
{
    ats_code rc;
    ats_node *node = NULL;
    refuse_tag(b, tag, mark);
    ATS_TRY(new_node(b, kind, mark, &node));
    if (b->depth == ATS_YAML_DEPTH) {
        fail_at(b, mark, "E-too-deep", "more than 64 levels of nesting");
        goto out;
    }
    ATS_TRY(add_anchor(b, name, node, mark));
    b->stack[b->depth++] = (frame){.node = node};
out:
    return rc;
}

static int by_key(const void *a, const void *b)
{
    const ats_entry *x = *(const ats_entry *const *)a, *y = *(const ats_entry *const *)b;
    const int order = strcmp(x->key->text, y->key->text);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Reports each key that stands in the map a second time, with the line of the first. */
static ats_code refuse_duplicates(builder *b, const ats_node *map)
{
    ats_code rc;
    const ats_entry **sorted = NULL;
    ATS_TRY(ATS_NEW(b->arena, map->count, &sorted, b->err));
    for (int64_t i = 0; i < map->count; i++) sorted[i] = &map->entries[i];
    qsort(sorted, (size_t)map->count, sizeof *sorted, by_key);
    for (int64_t i = 1, first = 0; i < map->count; i++) {
        const ats_node *key = sorted[i]->key, *earlier = sorted[first]->key;
        if (strcmp(key->text, earlier->text) != 0)
            first = i;
        else
            ats_issue_at(b->issues, key, "E-duplicate-key",
                         "key '%.80s' is given twice: lines %lld and %lld; keep one", key->text,
                         (long long)earlier->line, (long long)key->line);
    }
out:
    return rc;
}

static ats_code close_collection(builder *b)
{
    ats_code rc = ATS_OK;
    frame *top = &b->stack[--b->depth];
    top->node->items = top->items;
    top->node->entries = top->entries;
    for (int64_t i = 0; i < b->n_anchors; i++)
        if (b->anchors[i].node == top->node) b->anchors[i].open = false;
    if (top->node->kind == ATS_NODE_MAP && top->node->count > 1)
        ATS_TRY(refuse_duplicates(b, top->node));
    ATS_TRY(place_node(b, top->node));
out:
    return rc;
}

/* Column (from 1) of a tab among the blanks that begin the line, 0: none. */
static int64_t tab_in_indent(const ats_source *source, int64_t line, int64_t column)
{
    if (line < 1 || line > source->n_lines) return 0;
    const int64_t start = source->line_start[line - 1], stop = source->line_start[line];
    int64_t tab = 0;
    for (int64_t i = start; i < stop; i++) {
        if (column > 0 && i - start + 1 >= column) return tab;
        if (source->text[i] == '\t' && tab == 0) tab = i - start + 1;
        if (source->text[i] != ' ' && source->text[i] != '\t') return column > 0 ? 0 : tab;
    }
    return tab;
}

static void refuse_tab(builder *b, int64_t line, int64_t column)
{
    ats_issue_add(b->issues, b->source, line, column, "E-tab",
                  "a tab is used as indentation; YAML indents with spaces only");
    b->failed = true;
}

/* Something written stands there (the other events' marks lie on whatever comes next). */
static bool is_written(const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        return event->data.scalar.length > 0 || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return event->type == YAML_ALIAS_EVENT || event->type == YAML_SEQUENCE_START_EVENT ||
           event->type == YAML_MAPPING_START_EVENT;
}

static ats_code take_event(builder *b, const yaml_event_t *event)
{
    const int64_t line = (int64_t)event->start_mark.line + 1;
    const int64_t tab = tab_in_indent(b->source, line, (int64_t)event->start_mark.column + 1);
    if (tab > 0 && is_written(event)) {
        refuse_tab(b, line, tab);
        return ATS_OK;
    }
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->root != NULL)
            fail_at(b, event->start_mark, "E-second-document",
                    "a second document starts here; one file holds one document");
        return ATS_OK;
    case YAML_ALIAS_EVENT:
        return take_alias(b, (const char *)event->data.alias.anchor, event->start_mark);
    case YAML_SCALAR_EVENT:
        return take_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_collection(b, ATS_NODE_LIST, event->data.sequence_start.anchor,
                               event->data.sequence_start.tag, event->start_mark);
    case YAML_MAPPING_START_EVENT:
        return open_collection(b, ATS_NODE_MAP, event->data.mapping_start.anchor,
                               event->data.mapping_start.tag, event->start_mark);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_collection(b);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return ATS_OK;
}

static const char *syntax_hint(const char *problem)
{
    if (strstr(problem, "mapping values") != NULL)
        return "; a ': ' inside a text needs quotes, or the indentation is off";
    if (strstr(problem, "expected key") != NULL || strstr(problem, "block end") != NULL)
        return "; check the indentation of this line and the one above";
    if (strstr(problem, "cannot start any token") != NULL) return "; put the text in quotes";
    return "";
}

static void syntax_issue(builder *b, const yaml_parser_t *parser)
{
    const char *problem = parser->problem != NULL ? parser->problem : "not valid YAML";
    int64_t line = (int64_t)parser->problem_mark.line + 1;
    int64_t column = (int64_t)parser->problem_mark.column + 1;
    b->failed = true;
    if (parser->error == YAML_READER_ERROR) {
        ats_source_place(b->source, (int64_t)parser->problem_offset, &line, &column);
        ats_issue_add(b->issues, b->source, line, column, "E-encoding",
                      "%s; the file must be UTF-8 text", problem);
        return;
    }
    const int64_t tab = tab_in_indent(b->source, line, 0);
    if (tab > 0) {
        refuse_tab(b, line, tab);
        return;
    }
    char context[120] = "";
    if (parser->context != NULL)
        snprintf(context, sizeof context, " (%s that begins on line %lld)", parser->context,
                 (long long)parser->context_mark.line + 1);
    ats_issue_add(b->issues, b->source, line, column, "E-syntax", "%s%s%s", problem, context,
                  syntax_hint(problem));
}

static ats_code run_parser(builder *b)
{
    ats_code rc = ATS_OK;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return ats_fail(b->err, ATS_E_MEMORY, "out of memory");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)b->source->text,
                                 (size_t)b->source->size);
    for (bool end = false; !end && !b->failed && rc == ATS_OK;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            if (parser.error == YAML_MEMORY_ERROR)
                rc = ats_fail(b->err, ATS_E_MEMORY, "%s: out of memory", b->source->name);
            else
                syntax_issue(b, &parser);
            break;
        }
        rc = take_event(b, &event);
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

ats_code ats_yaml_parse_source(ats_arena *arena, const ats_source *source, ats_issues *issues,
                               const ats_node **out, ats_err *err)
{
    builder b = {.arena = arena, .issues = issues, .err = err, .source = source};
    const bool too_long = source->size > ATS_YAML_BYTES;
    const char *nul = too_long ? NULL : memchr(source->text, 0, (size_t)source->size);
    ats_code rc = ATS_OK;
    if (too_long) {
        ats_issue_add(issues, source, 1, 1, "E-too-big", "the file is larger than 16 MiB");
        b.failed = true;
    } else if (nul != NULL) {
        int64_t line, column;
        ats_source_place(source, nul - source->text, &line, &column);
        ats_issue_add(issues, source, line, column, "E-nul",
                      "the file holds a NUL byte; save it as UTF-8 text");
        b.failed = true;
    } else {
        rc = run_parser(&b);
    }
    if (rc == ATS_OK) *out = b.failed ? NULL : b.root;
    return rc;
}

ats_code ats_yaml_parse(ats_arena *arena, const char *name, const char *text, int64_t size,
                        ats_issues *issues, const ats_node **out, ats_err *err)
{
    ats_source *source = NULL;
    const ats_code rc = ats_source_new(arena, name, text, size, false, &source, err);
    return rc != ATS_OK ? rc : ats_yaml_parse_source(arena, source, issues, out, err);
}
