#include <math.h>
#include <stdio.h>

#include "report/html.h"
#include "report/svg.h"

enum { WIDTH = 360, HEIGHT = 264, LEFT = 40, RIGHT = 12, TOP = 10, BOTTOM = 84 };

typedef struct frame {
    const ats_svg_curves *plot;
    double x_low, x_high;
} frame;

static double x_of(const frame *f, double x)
{
    const double at = f->plot->log_x ? log(x) : x;
    const double low = f->plot->log_x ? log(f->x_low) : f->x_low;
    const double high = f->plot->log_x ? log(f->x_high) : f->x_high;
    const double share = high > low ? (at - low) / (high - low) : 0.5;
    return LEFT + fmin(fmax(share, 0), 1) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const frame *f, double y)
{
    const double share = (y - f->plot->y_low) / (f->plot->y_high - f->plot->y_low);
    return HEIGHT - BOTTOM - fmin(fmax(share, 0), 1) * (HEIGHT - TOP - BOTTOM);
}

/* Range of x over all series that have a y; log axes take positive x only. */
static bool find_range(frame *f)
{
    bool any = false;
    for (int64_t s = 0; s < f->plot->n_series; s++) {
        const ats_svg_series *series = &f->plot->series[s];
        for (int64_t i = 0; i < series->n; i++) {
            const double x = series->x[i];
            if (!isfinite(x) || !isfinite(series->y[i]) || (f->plot->log_x && x <= 0)) continue;
            f->x_low = any ? fmin(f->x_low, x) : x;
            f->x_high = any ? fmax(f->x_high, x) : x;
            any = true;
        }
    }
    return any;
}

static void x_tick(ats_text *page, const frame *f, double x)
{
    const double at = x_of(f, x);
    ats_text_add(page,
                 "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" class=\"grid\"/>"
                 "<text x=\"%.1f\" y=\"%d\" class=\"tick mid\">%.4g</text>",
                 at, at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 16, x);
}

static void draw_axes(ats_text *page, const frame *f)
{
    const ats_svg_curves *plot = f->plot;
    double ticks[ATS_SVG_TICKS];
    int n = ats_svg_ticks(plot->y_low, plot->y_high, ats_svg_step(plot->y_high - plot->y_low, 5),
                          ticks);
    for (int i = 0; i < n; i++)
        ats_text_add(page,
                     "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
                     "<text x=\"%d\" y=\"%.1f\" class=\"tick end\">%.3g</text>",
                     LEFT, WIDTH - RIGHT, y_of(f, ticks[i]), y_of(f, ticks[i]), LEFT - 6,
                     y_of(f, ticks[i]) + 4, ticks[i]);
    if (plot->log_x) {
        const int first = (int)floor(log2(f->x_low) + 1e-9),
                  last = (int)ceil(log2(f->x_high) - 1e-9);
        const int stride = (last - first) / 9 + 1;
        for (int k = first; k <= last; k += stride)
            if (ldexp(1, k) >= f->x_low * 0.999 && ldexp(1, k) <= f->x_high * 1.001)
                x_tick(page, f, ldexp(1, k));
    } else {
        n = ats_svg_ticks(f->x_low, f->x_high, ats_svg_step(f->x_high - f->x_low, 6), ticks);
        for (int i = 0; i < n; i++) x_tick(page, f, ticks[i]);
    }
    ats_text_add(page, "\n<text x=\"%d\" y=\"%d\" class=\"label end\">", WIDTH - RIGHT,
                 HEIGHT - BOTTOM + 32);
    ats_html_escape(page, plot->x_label);
    ats_text_add(page, "</text>\n");
}

static void draw_bands(ats_text *page, const frame *f)
{
    for (int64_t b = 0; b < f->plot->n_bands; b++) {
        const ats_svg_band *band = &f->plot->bands[b];
        if (band->stop < f->x_low || band->start > f->x_high) continue;
        const double left = x_of(f, band->start), right = x_of(f, band->stop);
        ats_text_add(
            page, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" class=\"band\"><title>",
            left, TOP, fmax(right - left, 2), HEIGHT - TOP - BOTTOM);
        ats_html_escape(page, band->label);
        ats_text_add(page, "</title></rect>\n");
    }
}

static void draw_series(ats_text *page, const frame *f, const ats_svg_series *series)
{
    bool open = false;
    ats_text_add(page, "<path class=\"line %s\" d=\"", series->style);
    for (int64_t i = 0; i < series->n; i++) {
        const bool drawn = isfinite(series->y[i]) && isfinite(series->x[i]) &&
                           !(f->plot->log_x && series->x[i] <= 0);
        if (drawn)
            ats_text_add(page, "%c%.1f %.1f", open ? 'L' : 'M', x_of(f, series->x[i]),
                         y_of(f, series->y[i]));
        open = drawn;
    }
    ats_text_add(page, "\"/>");
    for (int64_t i = 0; i < series->n && series->n <= 64; i++) {
        if (!isfinite(series->y[i]) || (f->plot->log_x && series->x[i] <= 0)) continue;
        ats_text_add(page, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>",
                     series->style, x_of(f, series->x[i]), y_of(f, series->y[i]));
        ats_html_escape(page, series->label);
        ats_text_add(page, " at %.4g: %.4g</title></circle>", series->x[i], series->y[i]);
    }
    ats_text_add(page, "\n");
}

/* Two labels a line. */
static void draw_key(ats_text *page, const ats_svg_curves *plot)
{
    for (int64_t s = 0; s < plot->n_series; s++) {
        const ats_svg_series *series = &plot->series[s];
        const double x = LEFT + (double)(s % 2) * (WIDTH - LEFT) / 2;
        const double y = HEIGHT - 36 + 15 * (double)(s / 2);
        ats_text_add(page,
                     "<line class=\"line %s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                     "<text x=\"%.1f\" y=\"%.1f\" class=\"tick\">",
                     series->style, x, x + 22, y, y, x + 27, y + 4);
        ats_html_escape(page, series->label);
        ats_text_add(page, "</text>");
    }
    ats_text_add(page, "\n");
}

void ats_svg_draw_curves(ats_text *page, const ats_svg_curves *plot)
{
    frame f = {.plot = plot};
    char description[256];
    if (!find_range(&f)) {
        ats_text_add(page, "<p class=\"none\">No numbers to draw.</p>\n");
        return;
    }
    snprintf(
        description, sizeof description,
        "%lld curves; horizontal from %.4g to %.4g, vertical from %.3g to %.3g; the table after "
        "it lists the numbers.",
        (long long)plot->n_series, f.x_low, f.x_high, plot->y_low, plot->y_high);
    ats_text_add(page, "<p class=\"ylabel\">");
    ats_html_escape(page, plot->y_label);
    ats_text_add(page, "</p>\n");
    ats_svg_open(page, plot->id, plot->title, description, WIDTH, HEIGHT);
    draw_bands(page, &f);
    draw_axes(page, &f);
    for (int64_t s = 0; s < plot->n_series; s++) draw_series(page, &f, &plot->series[s]);
    draw_key(page, plot);
    ats_text_add(page, "</svg>\n");
}
