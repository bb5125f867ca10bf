#include "base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool reserve(ats_text *text, int64_t more)
{
    if (text->rc != ATS_OK) return false;
    if (text->length + more + 1 <= text->room) return true;
    int64_t room = text->room > 0 ? text->room : 1024;
    while (room < text->length + more + 1) room *= 2;
    char *data = NULL;
    text->rc = ATS_NEW(text->arena, room, &data, text->err);
    if (text->rc != ATS_OK) return false;
    if (text->length > 0) memcpy(data, text->data, (size_t)text->length);
    text->data = data;
    text->room = room;
    return true;
}

void ats_text_add(ats_text *text, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (length >= 0 && reserve(text, length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, fmt, again);
        text->length += length;
    }
    va_end(again);
}

void ats_text_json(ats_text *text, const char *value)
{
    ats_text_add(text, "\"");
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            ats_text_add(text, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            ats_text_add(text, "\\u%04x", *c);
        else
            ats_text_add(text, "%c", *c);
    }
    ats_text_add(text, "\"");
}

/* Words that some YAML readers take for a boolean, nothing or a number. */
static bool is_ambiguous(const char *value)
{
    static const char *const words[] = {"true", "false", "yes", "no",  "on", "off",
                                        "null", "y",     "n",   "inf", "nan"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0) return true;
    return false;
}

void ats_text_scalar(ats_text *text, const char *value)
{
    const size_t length = strlen(value);
    bool plain = length > 0 && isalpha((unsigned char)value[0]) && !is_ambiguous(value);
    for (size_t i = 0; i < length && plain; i++)
        plain = isalnum((unsigned char)value[i]) || strchr("_-./", value[i]) != NULL;
    if (plain)
        ats_text_add(text, "%s", value);
    else
        ats_text_json(text, value);
}

void ats_text_shell(ats_text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-./=+:,@%";
    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        ats_text_add(text, "%s", word);
        return;
    }
    ats_text_add(text, "'");
    for (; *word != '\0'; word++) ats_text_add(text, *word == '\'' ? "'\\''" : "%c", *word);
    ats_text_add(text, "'");
}

ats_code ats_text_done(ats_text *text, const char **out)
{
    if (text->rc == ATS_OK) *out = text->data != NULL ? text->data : "";
    return text->rc;
}
