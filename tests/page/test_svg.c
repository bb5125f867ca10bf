#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "report/svg.h"
#include "support/check.h"

typedef struct drawing {
    ats_arena arena;
    ats_err err;
    ats_text text;
    const char *done;
} drawing;

static void start(drawing *d) { *d = (drawing){.text = {.arena = &d->arena, .err = &d->err}}; }

static const char *finish(drawing *d)
{
    assert_int_equal(ats_text_done(&d->text, &d->done), ATS_OK);
    return d->done;
}

static int64_t count(const char *text, const char *what)
{
    int64_t n = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) n++;
    return n;
}

static void test_steps_are_round(void **state)
{
    (void)state;
    assert_near(ats_svg_step(1, 5), 0.2, 1e-15);
    assert_near(ats_svg_step(7, 5), 2, 0);
    assert_near(ats_svg_step(300, 6), 50, 0);
    assert_near(ats_svg_step(0, 6), 1, 0);
    assert_near(ats_svg_step((double)INFINITY, 6), 1, 0);
    double ticks[ATS_SVG_TICKS];
    assert_int_equal(ats_svg_ticks(-0.1, 1, 0.5, ticks), 3);
    assert_near(ticks[0], 0, 0);
    assert_near(ticks[2], 1, 0);
    /* doses so large that a step of 1 does not move them */
    assert_int_equal(ats_svg_ticks(1e17, 1e17, ats_svg_step(0, 6), ticks), 1);
    assert_int_equal(ats_svg_ticks((double)INFINITY, (double)INFINITY, 1, ticks), 1);
}

static void test_extent_leaves_out_what_is_no_number(void **state)
{
    (void)state;
    const double values[] = {(double)NAN, 3, -(double)INFINITY, -1};
    double low = 7, high = 7;
    assert_true(ats_svg_extent(4, values, &low, &high));
    assert_near(low, -1, 0);
    assert_near(high, 3, 0);
    assert_false(ats_svg_extent(1, values, &low, &high));
}

/* Zero takes the middle colour, the ends the outer ones, beyond them too; NaN is marked. */
static void test_map_colours(void **state)
{
    (void)state;
    static const int64_t rows[] = {4, 9}, columns[] = {0, 1, 2};
    const double values[] = {0, 2, -2, 5, (double)NAN, -(double)INFINITY};
    drawing d;
    start(&d);
    ats_svg_heatmap(&d.text, &(ats_svg_map){.id = "m",
                                            .title = "t",
                                            .row_name = "layer",
                                            .column_name = "head",
                                            .n_rows = 2,
                                            .n_columns = 3,
                                            .rows = rows,
                                            .columns = columns,
                                            .values = values,
                                            .low = -2,
                                            .high = 2,
                                            .diverging = true,
                                            .better_high = true,
                                            .unit = "nats"});
    const char *svg = finish(&d);
    assert_non_null(strstr(svg, "class=\"d5\"><title>layer 4 head 0: 0<"));
    assert_non_null(strstr(svg, "class=\"d10\"><title>layer 4 head 1: 2<"));
    assert_non_null(strstr(svg, "class=\"d0\"><title>layer 4 head 2: -2<"));
    assert_non_null(strstr(svg, "class=\"d10\"><title>layer 9 head 0: 5<"));
    assert_non_null(strstr(svg, "class=\"na\"><title>layer 9 head 1: "));
    assert_non_null(strstr(svg, "class=\"d0\"><title>layer 9 head 2: "));
    assert_non_null(strstr(svg, "no number"));
    ats_arena_fini(&d.arena);
}

static void test_low_is_better_turns_the_scale(void **state)
{
    (void)state;
    static const int64_t one[] = {0};
    const double value[] = {-1};
    drawing d;
    start(&d);
    ats_svg_heatmap(&d.text, &(ats_svg_map){.id = "m",
                                            .title = "t",
                                            .row_name = "layer",
                                            .column_name = "head",
                                            .n_rows = 1,
                                            .n_columns = 1,
                                            .rows = one,
                                            .columns = one,
                                            .values = value,
                                            .low = -1,
                                            .high = 1,
                                            .diverging = true,
                                            .unit = ""});
    assert_non_null(strstr(finish(&d), "class=\"d10\"><title>layer 0 head 0: -1<"));
    ats_arena_fini(&d.arena);
}

/* On a log axis 1, 4, 16 are equally far apart; a gap breaks the line. */
static void test_curves(void **state)
{
    (void)state;
    const double x[] = {1, 4, 16}, y[] = {1, 0.5, 0}, gap[] = {1, (double)NAN, 0};
    const ats_svg_series series[] = {{"a", "treatment", 3, x, y}, {"b<", "control", 3, x, gap}};
    drawing d;
    start(&d);
    ats_svg_draw_curves(&d.text, &(ats_svg_curves){.id = "c",
                                                   .title = "t",
                                                   .x_label = "x",
                                                   .y_label = "y",
                                                   .log_x = true,
                                                   .y_low = 0,
                                                   .y_high = 1,
                                                   .n_series = 2,
                                                   .series = series});
    const char *svg = finish(&d), *path = strstr(svg, "class=\"line treatment\" d=\"M");
    double ax = 0, ay = 0, bx = 0, by = 0, cx = 0, cy = 0;
    assert_non_null(path);
    assert_int_equal(
        sscanf(strchr(path, 'M'), "M%lf %lfL%lf %lfL%lf %lf", &ax, &ay, &bx, &by, &cx, &cy), 6);
    assert_near(bx - ax, cx - bx, 0.11);
    assert_near(by - ay, cy - by, 0.11);
    assert_true(ay < cy);
    const char *broken = strstr(svg, "class=\"line control\" d=\"");
    assert_non_null(broken);
    char piece[200] = "";
    snprintf(piece, sizeof piece, "%.*s", (int)strcspn(broken + 24, "\""), broken + 24);
    assert_int_equal(count(piece, "M"), 2);
    assert_int_equal(count(piece, "L"), 0);
    assert_int_equal(count(svg, "<circle"), 5);
    assert_null(strstr(svg, "b<<"));
    ats_arena_fini(&d.arena);
}

static void test_bars_add_up(void **state)
{
    (void)state;
    static const char *const rows[] = {"one"}, *const parts[] = {"p", "q", "r"};
    const double values[] = {0.25, (double)NAN, 0.5};
    drawing d;
    start(&d);
    ats_svg_draw_bars(&d.text, &(ats_svg_bars){.id = "b",
                                               .title = "t",
                                               .n_rows = 1,
                                               .n_parts = 3,
                                               .rows = rows,
                                               .parts = parts,
                                               .values = values,
                                               .high = 1,
                                               .unit = "share"});
    const char *svg = finish(&d);
    const char *first = strstr(svg, "class=\"p0\"><title>"),
               *last = strstr(svg, "class=\"p2\"><title>");
    assert_non_null(first);
    assert_non_null(last);
    assert_null(strstr(svg, "class=\"p1\"><title>"));
    assert_non_null(strstr(svg, ">0.75</text>"));
    ats_arena_fini(&d.arena);
}

enum { WIDE = 128 };

/* The class of every cell, in order, from the rectangles of a map; returns how many. */
static int64_t classes_of_cells(const char *svg, char (*out)[8])
{
    int64_t n = 0;
    for (const char *at = svg; (at = strstr(at, "\"><title>layer ")) != NULL; at++) {
        const char *name = at;
        while (name[-1] != '"') name--;
        snprintf(out[n++], 8, "%.*s", (int)(at - name), name);
    }
    return n;
}

/* The same from the runs of a compact map. */
static int64_t classes_of_runs(const char *svg, char (*out)[8])
{
    int64_t n = 0;
    for (const char *at = strstr(svg, "<path class=\""); at != NULL;
         at = strstr(at, "<path class=\"")) {
        char name[8];
        int used = 0;
        long x = 0, y = 0, a, b, length;
        assert_int_equal(sscanf(at, "<path class=\"%7[a-z0-9]\" d=\"%n", name, &used), 1);
        for (at += used; *at != '"'; at += used) {
            if (sscanf(at, "M%ld %ldh%ld%n", &a, &b, &length, &used) == 3)
                x = a, y = b;
            else if (sscanf(at, "m%ld %ldh%ld%n", &a, &b, &length, &used) == 3)
                x += a, y += b;
            else
                fail_msg("no run at %.20s", at);
            for (long i = 0; i < length; i++, n++) snprintf(out[y * WIDE + x + i], 8, "%s", name);
            x += length;
        }
    }
    return n;
}

/* Colours alone say the same, in about 7 bytes a cell where no two neighbours are alike. */
static void test_compact_map(void **state)
{
    (void)state;
    static double values[WIDE * WIDE];
    static int64_t numbers[WIDE];
    static char detailed[WIDE * WIDE][8], compact[WIDE * WIDE][8];
    ats_rng rng = ats_rng_stream(3, "map", "svg", 0, 0, "values");
    for (int i = 0; i < WIDE; i++) numbers[i] = i;
    for (int i = 0; i < WIDE * WIDE; i++)
        values[i] = ats_rng_below(&rng, 50) == 0 ? (double)NAN : 2 * ats_rng_unit(&rng) - 1;
    ats_svg_map map = {.id = "m",
                       .title = "t",
                       .row_name = "layer",
                       .column_name = "head",
                       .n_rows = WIDE,
                       .n_columns = WIDE,
                       .rows = numbers,
                       .columns = numbers,
                       .values = values,
                       .low = -1,
                       .high = 1,
                       .diverging = true,
                       .unit = "nats"};
    drawing d;
    start(&d);
    ats_svg_heatmap(&d.text, &map);
    assert_int_equal(classes_of_cells(finish(&d), detailed), WIDE * WIDE);
    ats_arena_fini(&d.arena);
    start(&d);
    map.compact = true;
    ats_svg_heatmap(&d.text, &map);
    assert_int_equal(classes_of_runs(finish(&d), compact), WIDE * WIDE);
    assert_true(d.text.length < WIDE * WIDE * 7 + 5000);
    assert_memory_equal(detailed, compact, sizeof detailed);
    assert_null(strstr(d.done, "table"));
    ats_arena_fini(&d.arena);
}

/* Codes have letters where they fit, a key, and no class where there is no code. */
static void test_codes(void **state)
{
    (void)state;
    static const int64_t rows[] = {2}, columns[] = {0, 1, 2};
    static const ats_svg_code codes[] = {{"first", "F", "p0"}, {"second", "S", "p1"}};
    const double values[] = {1, 0, (double)NAN};
    drawing d;
    start(&d);
    ats_svg_heatmap(&d.text, &(ats_svg_map){.id = "m",
                                            .title = "t",
                                            .row_name = "layer",
                                            .column_name = "head",
                                            .n_rows = 1,
                                            .n_columns = 3,
                                            .rows = rows,
                                            .columns = columns,
                                            .values = values,
                                            .high = 1,
                                            .unit = "codes",
                                            .codes = codes,
                                            .n_codes = 2});
    const char *svg = finish(&d);
    assert_non_null(strstr(svg, "class=\"p1\"><title>layer 2 head 0: second<"));
    assert_non_null(strstr(svg, "class=\"p0\"><title>layer 2 head 1: first<"));
    assert_non_null(strstr(svg, "class=\"na\"><title>layer 2 head 2: "));
    assert_int_equal(count(svg, ">S</text>"), 2); /* the cell's and the key's */
    assert_int_equal(count(svg, ">second</text>"), 1);
    ats_arena_fini(&d.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_round),
        cmocka_unit_test(test_extent_leaves_out_what_is_no_number),
        cmocka_unit_test(test_map_colours),
        cmocka_unit_test(test_low_is_better_turns_the_scale),
        cmocka_unit_test(test_compact_map),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_bars_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
