#include <math.h>
#include <stdio.h>
#include <string.h>

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

static const ats_svg_code *code_of(const ats_svg_map *map, double value)
{
    return map->codes != NULL && value >= 0 && value < (double)map->n_codes
               ? &map->codes[(int64_t)value]
               : NULL;
}

/* The class of a cell, which is its colour. */
static void class_of(const ats_svg_map *map, double value, char out[16])
{
    const ats_svg_code *code = code_of(map, value);
    if (isnan(value) || (map->codes != NULL && code == NULL))
        snprintf(out, 16, "na");
    else if (code != NULL)
        snprintf(out, 16, "%s", code->style);
    else
        snprintf(out, 16, "%c%d", scale_of(map), colour_of(map, value));
}

static void draw_letter(ats_text *page, const ats_svg_code *code, double x, double y)
{
    ats_text_add(page, "<text x=\"%.1f\" y=\"%.1f\" class=\"letter %s\">%s</text>", x, y,
                 code->style, code->letter);
}

static void draw_cells(ats_text *page, const ats_svg_map *map, double cell, double height)
{
    for (int64_t i = 0; i < map->n_rows; i++)
        for (int64_t j = 0; j < map->n_columns; j++) {
            const double value = map->values[i * map->n_columns + j];
            const double x = LEFT + (double)j * cell, y = TOP + (double)i * height;
            const ats_svg_code *code = code_of(map, value);
            char name[16];
            class_of(map, value, name);
            ats_text_add(page,
                         "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                         "class=\"%s\"><title>%s %lld %s %lld: ",
                         x, y, cell, height, name, map->row_name, (long long)map->rows[i],
                         map->column_name, (long long)map->columns[j]);
            if (map->beyond != NULL && map->beyond[i * map->n_columns + j])
                ats_text_add(page, "over ");
            if (code != NULL)
                ats_text_add(page, "%s", code->word);
            else
                ats_html_number(page, value);
            ats_text_add(page, "</title></rect>\n");
            if (code != NULL && cell >= 11 && height >= 9)
                draw_letter(page, code, x + cell / 2, y + height / 2 + 4);
        }
}

/* Cells of one colour as runs of a single line, a unit thick, in units of cells. */
static void draw_runs(ats_text *page, const ats_svg_map *map, const char *name)
{
    bool any = false;
    for (int64_t i = 0; i < map->n_rows; i++) {
        int64_t last = 0;
        for (int64_t j = 0, stop; j < map->n_columns; j = stop) {
            char here[16], next[16];
            class_of(map, map->values[i * map->n_columns + j], here);
            for (stop = j + 1; stop < map->n_columns; stop++) {
                class_of(map, map->values[i * map->n_columns + stop], next);
                if (strcmp(next, here) != 0) break;
            }
            if (strcmp(here, name) != 0) continue;
            if (!any) ats_text_add(page, "<path class=\"%s\" d=\"", name);
            any = true;
            if (last == 0)
                ats_text_add(page, "M%lld %lldh%lld", (long long)j, (long long)i,
                             (long long)(stop - j));
            else
                ats_text_add(page, "m%lld 0h%lld", (long long)(j - last), (long long)(stop - j));
            last = stop;
        }
    }
    if (any) ats_text_add(page, "\"/>\n");
}

static void draw_compact(ats_text *page, const ats_svg_map *map, double cell, double height)
{
    char name[16];
    ats_text_add(page, "<g class=\"runs\" transform=\"translate(%d %.2f) scale(%.4f %.4f)\">\n",
                 LEFT, TOP + height / 2, cell, height);
    for (int64_t k = 0; k < map->n_codes; k++) draw_runs(page, map, map->codes[k].style);
    for (int k = 0; k < ATS_SVG_STEPS && map->codes == NULL; k++) {
        snprintf(name, sizeof name, "%c%d", scale_of(map), k);
        draw_runs(page, map, name);
    }
    draw_runs(page, map, "na");
    ats_text_add(page, "</g>\n");
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

/* The words of the codes, each with its colour and letter. */
static void draw_key(ats_text *page, const ats_svg_map *map, double y)
{
    double x = 2;
    for (int64_t k = 0; k < map->n_codes; k++) {
        const ats_svg_code *code = &map->codes[k];
        const double width = 24 + 6.2 * (double)strlen(code->word);
        if (x + width > WIDTH) {
            x = 2;
            y += 20;
        }
        ats_text_add(page, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\" class=\"%s\"/>",
                     x, y - 4, code->style);
        draw_letter(page, code, x + 7, y + 7);
        ats_text_add(page, "<text x=\"%.1f\" y=\"%.1f\" class=\"tick\">%s</text>", x + 18, y + 7,
                     code->word);
        x += width;
    }
    ats_text_add(page, "\n");
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
    snprintf(description, sizeof description,
             "Map of %lld rows (%s) and %lld columns (%s), coloured %s from %.3g to %.3g %s%s",
             (long long)map->n_rows, map->row_name, (long long)map->n_columns, map->column_name,
             map->codes != NULL ? "by code" : "by number", map->low, map->high, map->unit,
             map->compact ? "." : "; the table after it lists them.");
    ats_svg_open(page, map->id, map->title, description, WIDTH, bottom + LEGEND);
    draw_axes(page, map, cell, height);
    if (map->compact)
        draw_compact(page, map, cell, height);
    else
        draw_cells(page, map, cell, height);
    if (map->codes != NULL)
        draw_key(page, map, bottom + 14);
    else
        draw_legend(page, map, bottom + 14);
    ats_text_add(page, "</svg>\n");
}
