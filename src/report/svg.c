#include "report/svg.h"

#include <math.h>

#include "report/html.h"

void ats_svg_open(ats_text *page, const char *id, const char *title, const char *description,
                  double width, double height)
{
    ats_text_add(page,
                 "<svg role=\"img\" aria-labelledby=\"%s-t %s-d\" viewBox=\"0 0 %.0f %.0f\""
                 " style=\"max-width:%.0fpx\"><title id=\"%s-t\">",
                 id, id, width, height, 1.6 * width, id);
    ats_html_escape(page, title);
    ats_text_add(page, "</title><desc id=\"%s-d\">", id);
    ats_html_escape(page, description);
    ats_text_add(page, "</desc>\n");
}

bool ats_svg_extent(int64_t n, const double *values, double *low, double *high)
{
    bool any = false;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) continue;
        *low = any ? fmin(*low, values[i]) : values[i];
        *high = any ? fmax(*high, values[i]) : values[i];
        any = true;
    }
    return any;
}

double ats_svg_step(double width, int wanted)
{
    if (!(width > 0) || !isfinite(width)) return 1;
    const double raw = width / wanted, power = pow(10, floor(log10(raw)));
    const double mantissa = raw / power;
    return (mantissa <= 1 ? 1 : mantissa <= 2 ? 2 : mantissa <= 5 ? 5 : 10) * power;
}

int ats_svg_ticks(double low, double high, double step, double ticks[ATS_SVG_TICKS])
{
    const double first = ceil(low / step - 1e-9);
    int n = 0;
    for (int i = 0; i < ATS_SVG_TICKS; i++) {
        const double at = (first + i) * step;
        if (!(at <= high + 1e-9 * step)) break;
        if (n > 0 && at <= ticks[n - 1]) continue; /* too large for the step to move it */
        ticks[n++] = fabs(at) < 1e-9 * step ? 0.0 : at;
    }
    return n;
}
