#include "yaml/issue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the line break at text[i], 0: none. YAML 1.1 breaks, which libyaml counts. */
static int64_t break_width(const char *text, int64_t size, int64_t i)
{
    const unsigned char *t = (const unsigned char *)text + i;
    const int64_t left = size - i;
    if (t[0] == '\n') return 1;
    if (t[0] == '\r') return left > 1 && t[1] == '\n' ? 2 : 1;
    if (left > 1 && t[0] == 0xc2 && t[1] == 0x85) return 2;
    if (left > 2 && t[0] == 0xe2 && t[1] == 0x80 && (t[2] == 0xa8 || t[2] == 0xa9)) return 3;
    return 0;
}

ats_code ats_source_new(ats_arena *arena, const char *name, const char *text, int64_t size,
                        bool is_file, ats_source **out, ats_err *err)
{
    ats_code rc;
    ats_source *source = NULL;
    int64_t *start = NULL;
    int64_t lines = 1;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        size -= 3;
    }
    for (int64_t i = 0; i < size;) {
        const int64_t width = break_width(text, size, i);
        lines += width > 0;
        i += width > 0 ? width : 1;
    }
    ATS_TRY(ATS_NEW0(arena, 1, &source, err));
    ATS_TRY(ATS_NEW(arena, lines + 1, &start, err));
    *source = (ats_source){
        .text = text, .size = size, .n_lines = lines, .line_start = start, .is_file = is_file};
    ATS_TRY(ats_arena_strdup(arena, name, &source->name, err));
    start[0] = 0;
    int64_t line = 0;
    for (int64_t i = 0; i < size;) {
        const int64_t width = break_width(text, size, i);
        i += width > 0 ? width : 1;
        if (width > 0) start[++line] = i;
    }
    start[lines] = size;
    *out = source;
out:
    return rc;
}

static bool continues(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

void ats_source_place(const ats_source *source, int64_t offset, int64_t *line, int64_t *column)
{
    int64_t low = 0, high = source->n_lines - 1;
    if (offset > source->size) offset = source->size;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (source->line_start[middle] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    *line = low + 1;
    *column = 1;
    for (int64_t i = source->line_start[low]; i < offset; i++)
        *column += !continues(source->text[i]);
}

/* Bytes of the well-formed UTF-8 character at t, 0: it is none. */
static int character_width(const unsigned char *t)
{
    const int width = t[0] < 0x80   ? 1
                      : t[0] < 0xc2 ? 0
                      : t[0] < 0xe0 ? 2
                      : t[0] < 0xf0 ? 3
                      : t[0] < 0xf5 ? 4
                                    : 0;
    for (int i = 1; i < width; i++)
        if ((t[i] & 0xc0) != 0x80) return 0;
    const bool overlong = (t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xf0 && t[1] < 0x90);
    const bool outside = (t[0] == 0xed && t[1] > 0x9f) || (t[0] == 0xf4 && t[1] > 0x8f);
    return overlong || outside ? 0 : width;
}

/* What a terminal or an XML file cannot take becomes '?', a tab a blank. */
static void make_printable(char *text)
{
    for (unsigned char *t = (unsigned char *)text; *t != '\0';) {
        const int width = character_width(t);
        const bool c1 = t[0] == 0xc2 && t[1] < 0xa0;
        if (width == 0 || *t < 0x20 || *t == 0x7f) *t = *t == '\t' ? ' ' : '?';
        if (c1) t[0] = t[1] = '?';
        t += width > 1 ? width : 1;
    }
}

void ats_issue_add(ats_issues *issues, const ats_source *source, int64_t line, int64_t column,
                   const char *code, const char *fmt, ...)
{
    issues->count++;
    if (issues->count > ATS_ISSUES_CAP) return;
    ats_issue *issue = &issues->items[issues->count - 1];
    *issue = (ats_issue){.source = source, .line = line, .column = column, .code = code};
    va_list args;
    va_start(args, fmt);
    const int length = vsnprintf(issue->text, sizeof issue->text, fmt, args);
    va_end(args);
    if (length >= (int)sizeof issue->text) {
        size_t end = sizeof issue->text - 4;
        while (end > 0 && continues(issue->text[end])) end--;
        memcpy(issue->text + end, "...", 4);
    }
    make_printable(issue->text);
}

static int by_place(const void *a, const void *b)
{
    const ats_issue *x = a, *y = b;
    const int file = x->source == y->source ? 0 : strcmp(x->source->name, y->source->name);
    if (file != 0) return file;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

static int head(const ats_issue *issue, char *out, size_t size)
{
    return snprintf(out, size, "%s:%lld:%lld: error: %s [%s]", issue->source->name,
                    (long long)issue->line, (long long)issue->column, issue->text, issue->code);
}

/* "\n    source line\n    ^" with at most 96 characters of the line, the caret's column among them.
 */
static int excerpt(const ats_issue *issue, char *out, size_t size)
{
    enum { SHOWN = 96, BYTES = SHOWN * 4 + 1 };
    const ats_source *source = issue->source;
    if (issue->line < 1 || issue->line > source->n_lines) return 0;
    const char *text = source->text + source->line_start[issue->line - 1];
    const char *end = source->text + source->line_start[issue->line];
    const int64_t skip = issue->column > SHOWN - 16 ? issue->column - SHOWN / 2 : 0;
    char line[BYTES];
    size_t used = 0;
    int64_t column = 0;
    for (; text < end && *text != '\n' && *text != '\r'; text++) {
        column += !continues(*text);
        if (column <= skip) continue;
        if (column > skip + SHOWN || used + 1 >= sizeof line) break;
        line[used++] = *text != '\0' ? *text : '?';
    }
    line[used] = '\0';
    make_printable(line);
    return snprintf(out, size, "\n    %s\n    %*s", line, (int)(issue->column - skip), "^");
}

ats_code ats_issues_report(ats_issues *issues, ats_code code, ats_err *err)
{
    if (issues->count == 0) return ATS_OK;
    if (err == NULL) return code;
    const int64_t kept = issues->count < ATS_ISSUES_CAP ? issues->count : ATS_ISSUES_CAP;
    qsort(issues->items, (size_t)kept, sizeof issues->items[0], by_place);
    enum { TAIL = 64, PIECE = 2048 };
    char piece[PIECE];
    int64_t heads = 0;
    for (int64_t i = 0; i < kept; i++) heads += head(&issues->items[i], piece, sizeof piece) + 1;
    const int64_t room = (int64_t)sizeof err->text - TAIL;
    int64_t spare = room - heads; /* bytes for source lines */
    int64_t used = 0, shown = 0;
    for (; shown < kept; shown++) {
        const int length = head(&issues->items[shown], piece, sizeof piece);
        if (length >= PIECE || used + length + 1 > room) break;
        if (shown > 0) err->text[used++] = '\n';
        memcpy(err->text + used, piece, (size_t)length);
        used += length;
        const int more = excerpt(&issues->items[shown], piece, sizeof piece);
        if (more >= PIECE || more > spare) continue;
        memcpy(err->text + used, piece, (size_t)more);
        used += more;
        spare -= more;
    }
    err->text[used] = '\0';
    if (issues->count > shown)
        snprintf(err->text + used, TAIL, "%s%lld more errors are not shown", used > 0 ? "\n" : "",
                 (long long)(issues->count - shown));
    err->code = code;
    return code;
}
