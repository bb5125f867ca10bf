/* Plots as inline SVG, drawn from plain arrays: no script, no outside request, colours by class so
 * that one style sheet serves light, dark and print (page_style.c).
 *
 * Every plot is one <svg role="img"> with a title and a description for screen readers; exact
 * numbers are tooltips of the marks and stand in a table beside the plot (the caller's). */
#ifndef ATS_REPORT_SVG_H
#define ATS_REPORT_SVG_H

#include "base/text.h"

enum { ATS_SVG_STEPS = 11 }; /* colours of a scale */

/* A layer x head map. */
typedef struct ats_svg_map {
    const char *id;                     /* unique in the page, letters and digits */
    const char *title;                  /* what is shown */
    const char *row_name, *column_name; /* "layer", "head" */
    int64_t n_rows, n_columns;
    const int64_t *rows, *columns; /* numbers of the axes */
    const double *values;          /* [n_rows, n_columns]; NaN: no number */
    double low, high;              /* ends of the scale; values beyond take the end's colour */
    bool diverging;                /* two hues that meet at 0: low = -high */
    bool better_high;              /* diverging: the blue end is high */
    bool log_scale;                /* colours by the logarithm; low > 0 */
    const int8_t *beyond;          /* [n_rows, n_columns] 1: the number is a lower bound; or NULL */
    const char *unit;
    /* Values are codes 0, 1, ...: a word, a letter and a class for each; NULL: they are numbers. */
    const struct ats_svg_code *codes;
    int64_t n_codes;
    bool compact; /* colours alone, about 7 bytes a cell: no tooltips, no letters */
} ats_svg_map;
typedef struct ats_svg_code {
    const char *word, *letter, *style;
} ats_svg_code;
void ats_svg_heatmap(ats_text *page, const ats_svg_map *map);

typedef struct ats_svg_series {
    const char *label;
    const char *style; /* class: "treatment", "control", "law", "base", "candidate", "worst" */
    int64_t n;
    const double *x, *y; /* [n]; y NaN breaks the line */
} ats_svg_series;

/* A stretch of the x axis with a name, drawn under the curves. */
typedef struct ats_svg_band {
    double start, stop;
    const char *label;
} ats_svg_band;

typedef struct ats_svg_curves {
    const char *id, *title, *x_label, *y_label;
    bool log_x;
    double y_low, y_high;
    int64_t n_series;
    const ats_svg_series *series;
    int64_t n_bands;
    const ats_svg_band *bands;
} ats_svg_curves;
void ats_svg_draw_curves(ats_text *page, const ats_svg_curves *plot);

/* Horizontal stacked bars, one a row, each of total width values' sum / high. */
typedef struct ats_svg_bars {
    const char *id, *title;
    int64_t n_rows, n_parts;
    const char *const *rows, *const *parts;
    const double *values; /* [n_rows, n_parts] >= 0; NaN: nothing */
    double high;
    const char *unit;
} ats_svg_bars;
void ats_svg_draw_bars(ats_text *page, const ats_svg_bars *plot);

/* Opens <svg> with title and description ids; closed by "</svg>". */
void ats_svg_open(ats_text *page, const char *id, const char *title, const char *description,
                  double width, double height);
/* Least and largest finite value; false when there is none. */
bool ats_svg_extent(int64_t n, const double *values, double *low, double *high);
/* A round step for about `wanted` ticks over the width of an axis (1, 2, 5 x 10^k). */
double ats_svg_step(double width, int wanted);
/* Multiples of `step` in [low, high], ascending, the first ATS_SVG_TICKS at most. */
enum { ATS_SVG_TICKS = 32 };
int ats_svg_ticks(double low, double high, double step, double ticks[ATS_SVG_TICKS]);

#endif
