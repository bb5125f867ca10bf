#include <math.h>
#include <stdio.h>

#include "report/html.h"
#include "report/svg.h"

enum { WIDTH = 360, LEFT = 34, TOP = 30, LEGEND = 44 };

static int colour_of(const ats_svg_map *map, double value)
{
    const double share = map->log_scale ? log(value / map->low) / log(map->high / map->low)
                                        : (value - map->low) / (map->high - map->low);
    const double at = isfinite(share) ? share : value > 0 ? 1 : 0;
    const int step = (int)floor(fmin(fmax(at, 0), 1) * ATS_SVG_STEPS);
    const int colour = step < ATS_SVG_STEPS ? step : ATS_SVG_STEPS - 1;
    return map->diverging && !map->better_high ? ATS_SVG_STEPS - 1 - colour : colour;
}

static char scale_of(const ats_svg_map *map) { return map->diverging ? 'd' : 's'; }

static void draw_cells(ats_text *page, const ats_svg_map *map, double cell, double height)
{
    for (int64_t i = 0; i < map->n_rows; i++)
        for (int64_t j = 0; j < map->n_columns; j++) {
            const double value = map->values[i * map->n_columns + j];
            ats_text_add(page, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"",
                         LEFT + (double)j * cell, TOP + (double)i * height, cell, height);
            if (isnan(value))
                ats_text_add(page, " class=\"na\">");
            else
                ats_text_add(page, " class=\"%c%d\">", scale_of(map), colour_of(map, value));
            ats_text_add(page, "<title>%s %lld %s %lld: ", map->row_name, (long long)map->rows[i],
                         map->column_name, (long long)map->columns[j]);
            if (map->beyond != NULL && map->beyond[i * map->n_columns + j])
                ats_text_add(page, "over ");
            ats_html_number(page, value);
            ats_text_add(page, "</title></rect>\n");
        }
}

/* Every n-th number of an axis, so that labels keep `room` apart. */
static int64_t stride(double cell, double room)
{
    const double n = ceil(room / cell);
    return n > 1 ? (int64_t)n : 1;
}

static void draw_axes(ats_text *page, const ats_svg_map *map, double cell, double height)
{
    const int64_t across = stride(cell, 26), down = stride(height, 13);
    for (int64_t j = 0; j < map->n_columns; j += across)
        ats_text_add(page, "<text x=\"%.1f\" y=\"%d\" class=\"tick mid\">%lld</text>",
                     LEFT + ((double)j + 0.5) * cell, TOP - 5, (long long)map->columns[j]);
    for (int64_t i = 0; i < map->n_rows; i += down)
        ats_text_add(page, "<text x=\"%d\" y=\"%.1f\" class=\"tick end\">%lld</text>", LEFT - 5,
                     TOP + ((double)i + 0.5) * height + 4, (long long)map->rows[i]);
    ats_text_add(page,
                 "<text x=\"2\" y=\"%d\" class=\"tick\">%s \xe2\x86\x93  %s \xe2\x86\x92</text>\n",
                 11, map->row_name, map->column_name);
}

static bool has_gap(const ats_svg_map *map)
{
    for (int64_t i = 0; i < map->n_rows * map->n_columns; i++)
        if (isnan(map->values[i])) return true;
    return false;
}

static void draw_legend(ats_text *page, const ats_svg_map *map, double y)
{
    const double step = 18, end = LEFT + ATS_SVG_STEPS * step;
    for (int k = 0; k < ATS_SVG_STEPS; k++) {
        const int colour = map->diverging && !map->better_high ? ATS_SVG_STEPS - 1 - k : k;
        ats_text_add(page,
                     "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"10\" class=\"%c%d\"/>",
                     LEFT + k * step, y, step, scale_of(map), colour);
    }
    ats_text_add(page, "<text x=\"%d\" y=\"%.1f\" class=\"tick\">%.3g</text>", LEFT, y + 23,
                 map->low);
    if (map->diverging)
        ats_text_add(page, "<text x=\"%.1f\" y=\"%.1f\" class=\"tick mid\">0</text>",
                     (LEFT + end) / 2, y + 23);
    ats_text_add(page, "<text x=\"%.1f\" y=\"%.1f\" class=\"tick end\">%.3g</text>", end, y + 23,
                 map->high);
    if (has_gap(map))
        ats_text_add(page,
                     "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" class=\"na\"/>"
                     "<text x=\"%.1f\" y=\"%.1f\" class=\"tick\">no number</text>",
                     end + 14, y, end + 32, y + 9);
    ats_text_add(page, "\n");
}

void ats_svg_heatmap(ats_text *page, const ats_svg_map *map)
{
    const double room = WIDTH - LEFT - 4;
    const double cell = fmin(room / (double)map->n_columns, 48);
    const double height = fmin(cell, fmax(5, fmin(26, 620.0 / (double)map->n_rows)));
    const double bottom = TOP + height * (double)map->n_rows;
    char description[256];
    snprintf(
        description, sizeof description,
        "Map of %lld rows (%s) and %lld columns (%s), coloured from %.3g to %.3g %s; the table "
        "after it lists the numbers.",
        (long long)map->n_rows, map->row_name, (long long)map->n_columns, map->column_name,
        map->low, map->high, map->unit);
    ats_svg_open(page, map->id, map->title, description, WIDTH, bottom + LEGEND);
    draw_axes(page, map, cell, height);
    draw_cells(page, map, cell, height);
    draw_legend(page, map, bottom + 14);
    ats_text_add(page, "</svg>\n");
}
