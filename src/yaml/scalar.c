#include "yaml/scalar.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

enum { SHOWN = 60, HINT = 200 };

/* A scalar that stands for something; otherwise an issue. */
static bool is_value(ats_reader *reader, const ats_node *node, const char *what, const char *wanted)
{
    if (node->kind != ATS_NODE_SCALAR) {
        ats_issue_at(reader->issues, node, "E-kind", "%s: %s is wanted here, this is %s", what,
                     wanted, ats_node_kind_name(node->kind));
        return false;
    }
    if (!node->quoted && (node->text[0] == '\0' || strcmp(node->text, "~") == 0)) {
        ats_issue_at(reader->issues, node, "E-no-value",
                     "%s: a value must stand here%s; write it, or leave the key out", what,
                     node->text[0] == '~' ? " and '~' is none" : "");
        return false;
    }
    return true;
}

/* Plain text of a number or a boolean; quotes make it a text. */
static bool is_plain(ats_reader *reader, const ats_node *node, const char *what, const char *wanted)
{
    if (!is_value(reader, node, what, wanted)) return false;
    if (!node->quoted) return true;
    ats_issue_at(reader->issues, node, "E-quoted",
                 "%s: \"%.*s\" in quotes is a text and %s is wanted; take the quotes off", what,
                 SHOWN, node->text, wanted);
    return false;
}

bool ats_read_text(ats_reader *reader, const ats_node *node, const char *what, const char **out)
{
    if (!is_value(reader, node, what, "a text")) return false;
    *out = node->text;
    return true;
}

bool ats_read_bool(ats_reader *reader, const ats_node *node, const char *what, bool *out)
{
    static const char *const yes[] = {"yes", "y",   "on", "1",  "True", "TRUE",
                                      "YES", "Yes", "On", "ON", "Y",    NULL};
    static const char *const no[] = {"no", "n",  "off", "0",   "False", "FALSE",
                                     "NO", "No", "Off", "OFF", "N",     NULL};
    if (!is_plain(reader, node, what, "true or false")) return false;
    if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0) {
        *out = node->text[0] == 't';
        return true;
    }
    const char *hint = "write true or false";
    for (int64_t i = 0; yes[i] != NULL; i++)
        if (strcmp(node->text, yes[i]) == 0) hint = "write true";
    for (int64_t i = 0; no[i] != NULL; i++)
        if (strcmp(node->text, no[i]) == 0) hint = "write false";
    ats_issue_at(reader->issues, node, "E-boolean", "%s: '%.*s' is neither true nor false; %s",
                 what, SHOWN, node->text, hint);
    return false;
}

bool ats_read_int(ats_reader *reader, const ats_node *node, const char *what, int64_t min,
                  int64_t max, int64_t *out)
{
    char hint[HINT];
    int64_t value;
    if (!is_plain(reader, node, what, "a whole number")) return false;
    if (!ats_parse_int(node->text, &value, hint, sizeof hint)) {
        ats_issue_at(reader->issues, node, "E-number", "%s: '%.*s' is not a whole number: %s", what,
                     SHOWN, node->text, hint);
        return false;
    }
    if (value < min || value > max) {
        if (min == max)
            ats_issue_at(reader->issues, node, "E-range", "%s: %lld is not %lld, the only value",
                         what, (long long)value, (long long)min);
        else if (max == INT64_MAX)
            ats_issue_at(reader->issues, node, "E-range", "%s: %lld is below the least value %lld",
                         what, (long long)value, (long long)min);
        else
            ats_issue_at(reader->issues, node, "E-range", "%s: %lld is outside %lld to %lld", what,
                         (long long)value, (long long)min, (long long)max);
        return false;
    }
    *out = value;
    return true;
}

bool ats_read_real(ats_reader *reader, const ats_node *node, const char *what, double min,
                   double max, bool special, double *out)
{
    char hint[HINT], low[32], high[32];
    double value;
    if (!is_plain(reader, node, what, "a number")) return false;
    if (!ats_parse_real(node->text, special, &value, hint, sizeof hint)) {
        ats_issue_at(reader->issues, node, "E-number", "%s: '%.*s' is not a number: %s", what,
                     SHOWN, node->text, hint);
        return false;
    }
    if (value < min || value > max) {
        ats_format_real(min, low);
        ats_format_real(max, high);
        if (isfinite(min) && isfinite(max))
            ats_issue_at(reader->issues, node, "E-range", "%s: %.*s is outside %s to %s", what,
                         SHOWN, node->text, low, high);
        else
            ats_issue_at(reader->issues, node, "E-range", "%s: %.*s is %s %s", what, SHOWN,
                         node->text,
                         value < min ? "below the least value" : "above the largest value",
                         value < min ? low : high);
        return false;
    }
    *out = value;
    return true;
}

/* "a, b or c" */
static void list_words(const char *const *words, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (int64_t i = 0; words[i] != NULL && used < size; i++) {
        const char *between = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
        const int n = snprintf(out + used, size - used, "%s%s", between, words[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

bool ats_read_word(ats_reader *reader, const ats_node *node, const char *what,
                   const char *const *words, const char **out)
{
    char choices[256];
    if (!is_value(reader, node, what, "a word")) return false;
    for (int64_t i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], node->text) != 0) continue;
        *out = words[i];
        return true;
    }
    list_words(words, choices, sizeof choices);
    const char *near = ats_nearest(node->text, words);
    ats_issue_at(reader->issues, node, "E-word", "%s: '%.*s' is not one of %s%s%s%s", what, SHOWN,
                 node->text, choices, near != NULL ? "; did you mean '" : "",
                 near != NULL ? near : "", near != NULL ? "'?" : "");
    return false;
}

bool ats_read_texts(ats_reader *reader, const ats_node *node, const char *what, ats_strings *out)
{
    const ats_node *const one[] = {node};
    const bool list = node->kind == ATS_NODE_LIST;
    const ats_node *const *nodes = list ? node->items : one;
    const int64_t count = list ? node->count : 1;
    const char **items = NULL;
    if (!ATS_READ_NEW(reader, count, &items)) return false;
    bool good = true;
    for (int64_t i = 0; i < count; i++) good &= ats_read_text(reader, nodes[i], what, &items[i]);
    if (good) *out = (ats_strings){.count = count, .items = items};
    return good;
}
