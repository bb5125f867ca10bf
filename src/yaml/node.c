#include "yaml/node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const ats_node *ats_node_get(const ats_node *node, const char *key)
{
    if (node == NULL || node->kind != ATS_NODE_MAP) return NULL;
    for (int64_t i = 0; i < node->count; i++)
        if (strcmp(node->entries[i].key->text, key) == 0) return node->entries[i].value;
    return NULL;
}

const char *ats_node_kind_name(ats_node_kind kind)
{
    static const char *const names[] = {"a single value", "a list", "a mapping"};
    return names[kind];
}

void ats_issue_at(ats_issues *issues, const ats_node *node, const char *code, const char *fmt, ...)
{
    char text[ATS_ISSUE_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ats_issue_add(issues, node->source, node->line, node->column, code, "%s", text);
}

/* The whole stream, at most ATS_YAML_BYTES + 1 bytes so that the parser can refuse the rest. */
static ats_code slurp(ats_arena *arena, FILE *file, const char *path, char **text, int64_t *size,
                      ats_err *err)
{
    ats_code rc = ATS_OK;
    struct stat info;
    if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode))
        return ats_fail(err, ATS_E_INPUT, "%s: is a folder, not a YAML file", path);
    int64_t room = 1 << 16, used = 0;
    char *buffer = NULL;
    ATS_TRY(ATS_NEW(arena, room, &buffer, err));
    for (;;) {
        used += (int64_t)fread(buffer + used, 1, (size_t)(room - used), file);
        if (used < room || used > ATS_YAML_BYTES) break;
        char *larger = NULL;
        ATS_TRY(ATS_NEW(arena, 2 * room, &larger, err));
        memcpy(larger, buffer, (size_t)used);
        buffer = larger;
        room *= 2;
    }
    if (ferror(file)) {
        rc = ats_fail(err, ATS_E_INPUT, "%s: cannot be read: %s", path, strerror(errno));
        goto out;
    }
    *text = buffer;
    *size = used;
out:
    return rc;
}

ats_code ats_source_read(ats_arena *arena, const char *path, ats_source **out, ats_err *err)
{
    ats_code rc;
    char *text = NULL;
    int64_t size = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return ats_fail(err, ATS_E_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    ATS_TRY(slurp(arena, file, path, &text, &size, err));
    ATS_TRY(ats_source_new(arena, path, text, size, true, out, err));
out:
    fclose(file);
    return rc;
}

ats_code ats_yaml_load(ats_arena *arena, const char *path, ats_issues *issues, const ats_node **out,
                       ats_err *err)
{
    ats_source *source = NULL;
    const ats_code rc = ats_source_read(arena, path, &source, err);
    return rc != ATS_OK ? rc : ats_yaml_parse_source(arena, source, issues, out, err);
}
