#include "yaml/scalar.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

static const char *skip_sign(const char *t) { return *t == '+' || *t == '-' ? t + 1 : t; }

/* True when the text is made of digits and marks that look like a number to somebody. */
static bool looks_numeric(const char *text)
{
    return *skip_sign(text) != '\0' && strspn(text, "0123456789_,:.+-eE ") == strlen(text) &&
           strpbrk(text, digits) != NULL;
}

/* The text without the characters of `drop`. */
static void without(const char *text, const char *drop, char *out, size_t size)
{
    size_t used = 0;
    for (; *text != '\0' && used + 1 < size; text++)
        if (strchr(drop, *text) == NULL) out[used++] = *text;
    out[used] = '\0';
}

/* Why a text that is no number is none; `kind` is "a number" or "a whole number". */
static void explain(const char *text, const char *kind, char *hint, size_t size)
{
    char plain[64];
    const char *body = skip_sign(text);
    if (looks_numeric(text) && strchr(text, '_') != NULL) {
        without(text, "_", plain, sizeof plain);
        snprintf(hint, size, "'_' is not part of a number; write %s", plain);
    } else if (looks_numeric(text) && strchr(text, ',') != NULL) {
        snprintf(hint, size, "',' is not part of a number; the decimal mark is '.'");
    } else if (looks_numeric(text) && strchr(text, ':') != NULL) {
        snprintf(hint, size, "':' is not part of a number; write it in one unit");
    } else if (looks_numeric(text) && body[0] == '0' && strchr(digits, body[1]) != NULL &&
               body[1] != '\0') {
        while (body[0] == '0' && body[1] != '\0' && strchr(digits, body[1]) != NULL) body++;
        snprintf(hint, size, "a leading zero may mean octal; write %.40s or 0o%.40s", body, body);
    } else {
        snprintf(hint, size, "%s is wanted here", kind);
    }
}

/* 0x1F and 0o17. False when it is neither; *fits tells of overflow. */
static bool parse_prefixed(const char *text, int64_t *out, bool *fits)
{
    const char *hex = "0123456789abcdefABCDEF", *octal = "01234567";
    if (text[0] != '0' || (text[1] != 'x' && text[1] != 'o') || text[2] == '\0') return false;
    const int base = text[1] == 'x' ? 16 : 8;
    if (strspn(text + 2, base == 16 ? hex : octal) != strlen(text + 2)) return false;
    errno = 0;
    const intmax_t value = strtoimax(text + 2, NULL, base);
    *fits = errno == 0;
    *out = value;
    return true;
}

static double c_strtod(const char *text)
{
    const locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return strtod(text, NULL);
    const double x = strtod_l(text, NULL, c);
    freelocale(c);
    return x;
}

/* [-+]? (digits [. digits] | . digits) ([eE] [-+]? digits)?, no leading zero before a digit. */
static bool is_decimal(const char *text, bool *whole)
{
    const char *t = skip_sign(text);
    const size_t before = strspn(t, digits);
    if (before > 1 && t[0] == '0') return false;
    t += before;
    size_t after = 0;
    *whole = true;
    if (*t == '.') {
        after = strspn(++t, digits);
        t += after;
        *whole = false;
    }
    if (before + after == 0) return false;
    if (*t == 'e' || *t == 'E') {
        t = skip_sign(t + 1);
        const size_t exponent = strspn(t, digits);
        if (exponent == 0) return false;
        t += exponent;
        *whole = false;
    }
    return *t == '\0';
}

static bool parse_special(const char *text, double *out)
{
    const char *body = skip_sign(text);
    if (strcmp(body, ".inf") == 0)
        *out = text[0] == '-' ? -INFINITY : INFINITY;
    else if (strcmp(text, ".nan") == 0)
        *out = NAN;
    else
        return false;
    return true;
}

bool ats_parse_real(const char *text, bool special, double *out, char *hint, size_t size)
{
    bool whole, fits;
    int64_t integer;
    double value;
    if (parse_special(text, &value)) {
        if (special) *out = value;
        if (!special)
            snprintf(hint, size, "%s has no meaning here; a finite number is wanted", text);
        return special;
    }
    if (parse_prefixed(text, &integer, &fits)) {
        if (fits) *out = (double)integer;
        if (!fits) snprintf(hint, size, "the number is too large");
        return fits;
    }
    if (!is_decimal(text, &whole)) {
        explain(text, "a number", hint, size);
        return false;
    }
    value = c_strtod(text);
    if (isinf(value)) {
        snprintf(hint, size, "the number is too large for double precision");
        return false;
    }
    if (value == 0 && strcspn(text, "123456789") < strcspn(text, "eE")) {
        snprintf(hint, size, "the number is too small for double precision; write 0");
        return false;
    }
    *out = value;
    return true;
}

bool ats_parse_int(const char *text, int64_t *out, char *hint, size_t size)
{
    bool whole, fits = true;
    int64_t value = 0;
    if (!parse_prefixed(text, &value, &fits)) {
        if (!is_decimal(text, &whole)) {
            explain(text, "a whole number", hint, size);
            return false;
        }
        if (!whole) {
            const double real = c_strtod(text);
            if (real == floor(real) && fabs(real) < 1e15)
                snprintf(hint, size, "a whole number is written in digits alone: %.0f", real);
            else
                snprintf(hint, size, "a whole number is wanted here");
            return false;
        }
        errno = 0;
        value = strtoimax(text, NULL, 10);
        fits = errno == 0;
    }
    if (!fits) {
        snprintf(hint, size, "the number does not fit in 64 bits");
        return false;
    }
    *out = value;
    return true;
}

void ats_format_real(double x, char out[32])
{
    if (isnan(x) || isinf(x)) {
        snprintf(out, 32, "%s", isnan(x) ? ".nan" : x > 0 ? ".inf" : "-.inf");
        return;
    }
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(out, 32, "%.*g", precision, x);
        for (char *c = out; *c != '\0'; c++)
            if (strchr("+-.e0123456789", *c) == NULL) *c = '.'; /* another locale's decimal mark */
        if (c_strtod(out) == x) return;
    }
}
