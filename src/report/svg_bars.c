#include <math.h>
#include <stdio.h>

#include "report/html.h"
#include "report/svg.h"

enum { WIDTH = 420, LEFT = 112, RIGHT = 44, ROW = 20, BAR = 14, KEY = 26 };

static void draw_key(ats_text *page, const ats_svg_bars *plot)
{
    double x = 2;
    for (int64_t p = 0; p < plot->n_parts; p++) {
        int width = 0;
        for (const char *c = plot->parts[p]; *c != '\0'; c++) width++;
        ats_text_add(page,
                     "<rect x=\"%.1f\" y=\"3\" width=\"12\" height=\"12\" class=\"p%lld\"/>"
                     "<text x=\"%.1f\" y=\"13\" class=\"tick\">",
                     x, (long long)p, x + 16);
        ats_html_escape(page, plot->parts[p]);
        ats_text_add(page, "</text>");
        x += 26 + 6.2 * width;
    }
    ats_text_add(page, "\n");
}

/* A name that fits left of the bars. */
static void draw_name(ats_text *page, const char *name, double y)
{
    enum { MOST = 17 };
    char text[4 * MOST + 8];
    int shown = 0;
    size_t used = 0;
    for (const char *c = name; *c != '\0' && used + 8 < sizeof text; c++) {
        if (((unsigned char)*c & 0xc0) != 0x80 && shown++ == MOST) {
            used += (size_t)snprintf(text + used, sizeof text - used, "\xe2\x80\xa6");
            break;
        }
        text[used++] = *c;
    }
    text[used] = '\0';
    ats_text_add(page, "<text x=\"%d\" y=\"%.1f\" class=\"tick end\">", LEFT - 8, y);
    ats_html_escape(page, text);
    ats_text_add(page, "</text>");
}

void ats_svg_draw_bars(ats_text *page, const ats_svg_bars *plot)
{
    const double height = KEY + ROW * (double)plot->n_rows + 6;
    const double scale = plot->high > 0 ? (WIDTH - LEFT - RIGHT) / plot->high : 0;
    char description[200];
    snprintf(
        description, sizeof description,
        "Stacked bars of %lld parts for %lld rows, in %s; the table after it lists the numbers.",
        (long long)plot->n_parts, (long long)plot->n_rows, plot->unit);
    ats_svg_open(page, plot->id, plot->title, description, WIDTH, height);
    draw_key(page, plot);
    for (int64_t r = 0; r < plot->n_rows; r++) {
        const double y = KEY + ROW * (double)r;
        double x = LEFT, total = 0;
        draw_name(page, plot->rows[r], y + 12);
        for (int64_t p = 0; p < plot->n_parts; p++) {
            const double value = plot->values[r * plot->n_parts + p];
            if (!(value > 0)) continue;
            ats_text_add(page,
                         "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" class=\"p%lld\">"
                         "<title>",
                         x, y, value * scale, BAR, (long long)p);
            ats_html_escape(page, plot->rows[r]);
            ats_text_add(page, ", ");
            ats_html_escape(page, plot->parts[p]);
            ats_text_add(page, ": %.4g</title></rect>", value);
            x += value * scale;
            total += value;
        }
        ats_text_add(page, "<text x=\"%.1f\" y=\"%.1f\" class=\"tick\">%.3g</text>\n", x + 6,
                     y + 12, total);
    }
    ats_text_add(page, "</svg>\n");
}
