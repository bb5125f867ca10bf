#include "cli/style.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

static bool colour_on;

ats_code ats_style_set(const char *when, ats_err *err)
{
    const char *no_color = getenv("NO_COLOR");
    if (when == NULL || strcmp(when, "auto") == 0)
        colour_on = isatty(STDOUT_FILENO) != 0 && (no_color == NULL || no_color[0] == '\0');
    else if (strcmp(when, "always") == 0)
        colour_on = true;
    else if (strcmp(when, "never") == 0)
        colour_on = false;
    else
        return ats_fail(err, ATS_E_USAGE, "--color %s: must be auto, always or never", when);
    return ATS_OK;
}

const char *ats_style(const char *name)
{
    static const struct {
        const char *name, *code;
    } styles[] = {{"off", "\033[0m"},  {"bold", "\033[1m"},   {"dim", "\033[2m"},
                  {"red", "\033[31m"}, {"green", "\033[32m"}, {"yellow", "\033[33m"}};
    for (size_t i = 0; colour_on && i < sizeof styles / sizeof styles[0]; i++)
        if (strcmp(styles[i].name, name) == 0) return styles[i].code;
    return "";
}

void ats_print_fixed(int width, int decimals, double value)
{
    if (isnan(value))
        printf(" %*s", width, "-");
    else if (snprintf(NULL, 0, "%.*f", decimals, value) <= width)
        printf(" %*.*f", width, decimals, value);
    else
        printf(" %*.*g", width, decimals, value);
}

void ats_print_text(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    for (; *at != '\0'; at++) {
        const bool c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
        if (*at < 0x20 || *at == 0x7f || c1)
            printf("\\x%02x", c1 ? *++at : *at);
        else
            putchar(*at);
    }
}
