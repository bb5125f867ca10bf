#include "cli/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

ats_code ats_json_print(json_t *value, ats_err *err)
{
    char *text = value != NULL ? json_dumps(value, JSON_INDENT(2)) : NULL;
    json_decref(value);
    if (text == NULL) return ats_fail(err, ATS_E_MEMORY, "out of memory while printing JSON");
    puts(text);
    free(text);
    return ATS_OK;
}

json_t *ats_json_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* Bytes of the well-formed UTF-8 sequence at c (Unicode 15, table 3-7); 0: it is none. */
static size_t sequence(const unsigned char *c)
{
    const unsigned char first = c[0];
    if (first < 0x80) return 1;
    const size_t n = first >= 0xc2 && first <= 0xdf   ? 2
                     : (first & 0xf0) == 0xe0         ? 3
                     : first >= 0xf0 && first <= 0xf4 ? 4
                                                      : 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    if ((first == 0xe0 && c[1] < 0xa0) || (first == 0xed && c[1] > 0x9f)) return 0;
    if ((first == 0xf0 && c[1] < 0x90) || (first == 0xf4 && c[1] > 0x8f)) return 0;
    return n;
}

char *ats_utf8(const char *value)
{
    char *clean = malloc(3 * strlen(value) + 1), *at = clean;
    if (clean == NULL) return NULL;
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0';) {
        const size_t n = sequence(c);
        memcpy(at, n > 0 ? (const char *)c : "\xef\xbf\xbd", n > 0 ? n : 3);
        at += n > 0 ? n : 3;
        c += n > 0 ? n : 1;
    }
    *at = '\0';
    return clean;
}

json_t *ats_json_text(const char *value)
{
    if (value == NULL) return json_null();
    char *clean = ats_utf8(value);
    json_t *text = clean != NULL ? json_string(clean) : NULL;
    free(clean);
    return text;
}

/* One write, so that lines of several processes on one pipe do not mix. */
static void put_line(json_t *line)
{
    char *text = line != NULL ? json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(line);
    if (text == NULL) return;
    const size_t length = strlen(text);
    text[length] = '\n';
    fwrite(text, 1, length + 1, stderr);
    fflush(stderr);
    free(text);
}

static json_t *start_line(const char *level, const char *event, const char *message)
{
    struct timespec now;
    struct tm parts;
    char stamp[40] = "";
    json_t *line = json_object();
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &parts) != NULL) {
        const size_t n = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
        snprintf(stamp + n, sizeof stamp - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
    }
    json_object_set_new(line, "time", json_string(stamp));
    json_object_set_new(line, "level", json_string(level));
    json_object_set_new(line, "event", json_string(event));
    json_object_set_new(line, "message", ats_json_text(message));
    return line;
}

static json_t *number(double value)
{
    const bool whole = fabs(value) < 0x1p53 && value == floor(value);
    return whole ? json_integer((json_int_t)value) : ats_json_real(value);
}

static void sink(const ats_log_record *record)
{
    json_t *line = start_line(record->level, record->event, record->message);
    for (int64_t i = 0; i < record->n_fields; i++) {
        const ats_log_field *field = &record->fields[i];
        json_object_set_new(line, field->key,
                            field->text != NULL ? ats_json_text(field->text)
                                                : number(field->number));
    }
    put_line(line);
}

void ats_log_object(const char *event, const char *message, const char *key, json_t *value)
{
    if (!ats_log_has_sink() || ats_log_get_level() < ATS_LOG_NORMAL) {
        json_decref(value);
        return;
    }
    json_t *line = start_line("info", event, message);
    json_object_set_new(line, key, value);
    put_line(line);
}

ats_code ats_log_format_set(const char *format, ats_err *err)
{
    if (format == NULL || strcmp(format, "text") == 0)
        ats_log_set_sink(NULL);
    else if (strcmp(format, "json") == 0)
        ats_log_set_sink(sink);
    else
        return ats_fail(err, ATS_E_USAGE, "--log-format %s: must be text or json", format);
    return ATS_OK;
}
