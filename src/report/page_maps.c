#include <math.h>
#include <stdio.h>

#include "metrics/metric.h"
#include "report/html.h"
#include "report/page.h"
#include "report/svg.h"

/* One quantity over layers and heads. */
typedef struct quantity {
    const char *id, *title, *unit;
    const char *reading;         /* HTML */
    const double *result, *base; /* [layers, heads]; base NULL: no baseline, or another shape */
    bool diverging, log_scale;
    ats_better better; /* neither: the colours of a difference say more or less, not good or bad */
    const int8_t *beyond, *base_beyond; /* lower bounds, or NULL */
} quantity;

static bool same_heads(const ats_page_result *a, const ats_page_result *b)
{
    bool same = b != NULL && a->n_layers == b->n_layers && a->n_heads == b->n_heads;
    for (int64_t i = 0; same && i < a->n_layers; i++) same = a->layers[i] == b->layers[i];
    for (int64_t i = 0; same && i < a->n_heads; i++) same = a->heads[i] == b->heads[i];
    return same;
}

static void numbers_table(ats_page *page, const double *values, const int8_t *beyond)
{
    const ats_page_result *x = page->result;
    ats_text *text = &page->text;
    if (page->compact) return;
    ats_text_add(text, "<details><summary>numbers</summary><div class=\"wide\" tabindex=\"0\">"
                       "<table><tr><th scope=\"col\">layer</th>");
    for (int64_t h = 0; h < x->n_heads; h++)
        ats_text_add(text, "<th scope=\"col\">head %lld</th>", (long long)x->heads[h]);
    ats_text_add(text, "</tr>\n");
    for (int64_t l = 0; l < x->n_layers; l++) {
        ats_text_add(text, "<tr><th scope=\"row\">%lld</th>", (long long)x->layers[l]);
        for (int64_t h = 0; h < x->n_heads; h++) {
            const int64_t at = l * x->n_heads + h;
            ats_text_add(text, beyond != NULL && beyond[at] ? "<td>&gt;" : "<td>");
            ats_html_number(text, values[at]);
            ats_text_add(text, "</td>");
        }
        ats_text_add(text, "</tr>\n");
    }
    ats_text_add(text, "</table></div></details>\n");
}

static void one_map(ats_page *page, const quantity *q, const char *suffix, const char *caption,
                    const double *values, const int8_t *beyond, double low, double high,
                    bool diverging)
{
    const ats_page_result *x = page->result;
    char id[64], title[256];
    snprintf(id, sizeof id, "%s%s", q->id, suffix);
    snprintf(title, sizeof title, "%s%s%s", q->title, caption[0] != '\0' ? ", " : "", caption);
    const ats_svg_map map = {.id = id,
                             .title = title,
                             .row_name = "layer",
                             .column_name = "head",
                             .n_rows = x->n_layers,
                             .n_columns = x->n_heads,
                             .rows = x->layers,
                             .columns = x->heads,
                             .values = values,
                             .low = low,
                             .high = high,
                             .diverging = diverging,
                             .better_high = q->better != ATS_BETTER_LESS,
                             .log_scale = q->log_scale && !diverging,
                             .beyond = beyond,
                             .unit = q->unit,
                             .compact = page->compact};
    ats_text_add(&page->text, "<figure><figcaption>");
    ats_html_escape(&page->text, caption[0] != '\0' ? caption : q->title);
    ats_text_add(&page->text, "</figcaption>\n");
    ats_svg_heatmap(&page->text, &map);
    numbers_table(page, values, beyond);
    ats_text_add(&page->text, "</figure>\n");
}

/* Ends of a scale that holds both results: symmetric around 0 when two hues meet there. */
static bool find_scale(const quantity *q, int64_t n, bool diverging, double *low, double *high)
{
    double other_low = 0, other_high = 0;
    if (!ats_svg_extent(n, q->result, low, high)) return false;
    if (q->base != NULL && ats_svg_extent(n, q->base, &other_low, &other_high)) {
        *low = fmin(*low, other_low);
        *high = fmax(*high, other_high);
    }
    if (diverging) {
        *high = fmax(fabs(*low), fabs(*high));
        if (*high == 0) *high = 1; /* no difference at all */
        *low = -*high;
    }
    if (!(*high > *low)) {
        *high = *low + 1e-9 + fabs(*low) * 0.01;
        *low = diverging ? -*high : *low;
    }
    return true;
}

static void difference(ats_page *page, const quantity *q, int64_t n)
{
    double *values = NULL, low = 0, high = 0;
    if (page->text.rc == ATS_OK)
        page->text.rc = ATS_NEW(page->text.arena, n, &values, page->text.err);
    if (page->text.rc != ATS_OK) return;
    for (int64_t i = 0; i < n; i++)
        values[i] = q->log_scale ? log2(q->result[i] / q->base[i]) : q->result[i] - q->base[i];
    const quantity d = {.result = values};
    if (!find_scale(&d, n, true, &low, &high)) return;
    char caption[96];
    snprintf(caption, sizeof caption, "%s: %s",
             q->log_scale ? "candidate over baseline, doublings" : "candidate minus baseline",
             q->better == ATS_BETTER_NEITHER ? "blue more, orange less, neither is better"
             : q->better == ATS_BETTER_MORE  ? "blue better, orange worse"
                                             : "blue less and better, orange worse");
    one_map(page, q, "d", caption, values, NULL, low, high, true);
}

static void draw_quantity(ats_page *page, const quantity *q)
{
    const int64_t n = page->result->n_layers * page->result->n_heads;
    double low = 0, high = 0;
    const bool any = find_scale(q, n, q->diverging, &low, &high);
    if (!any && q->result != page->result->shift) return; /* not among the kept metrics */
    if (any && !ats_page_takes(page, q->title, q->base != NULL ? 3 : 1)) return;
    ats_text_add(&page->text, "<h3>");
    ats_html_escape(&page->text, q->title);
    ats_text_add(&page->text, " <span class=\"dim\">(%s)</span></h3>\n", q->unit);
    ats_text_add(&page->text, "<p class=\"dim\">%s</p>\n", q->reading);
    if (!any) {
        ats_text_add(&page->text, "<p class=\"none\">No head has a number.</p>\n");
        return;
    }
    ats_text_add(&page->text, "<div class=\"grid3\">\n");
    if (q->base != NULL)
        one_map(page, q, "b", "baseline", q->base, q->base_beyond, low, high, q->diverging);
    one_map(page, q, "c", q->base != NULL ? "candidate" : "", q->result, q->beyond, low, high,
            q->diverging);
    if (q->base != NULL) difference(page, q, n);
    ats_text_add(&page->text, "</div>\n");
}

void ats_page_maps(ats_page *page)
{
    const ats_page_result *x = page->result;
    const ats_page_result *b = same_heads(x, page->base) ? page->base : NULL;
    const quantity all[] = {
        {.id = "mapshift",
         .title = "Loss of the target under insertions",
         .unit = "nats",
         .reading = "Mean change of the target span's log mass over all cases that have a control "
                    "twin: 0 keeps its weight, -0.69 halves it. Orange loses, blue gains.",
         .result = x->shift,
         .base = b != NULL ? b->shift : NULL,
         .diverging = true,
         .better = ATS_BETTER_MORE},
        {.id = "maphalf",
         .title = "Half dose of distractors",
         .unit = "dose",
         .reading =
             "Median dose at which the target keeps half its weight, over samples and all dose "
             "curves of distractors; a curve that never falls so far counts as censored, and "
             "&gt; marks a median beyond the largest dose. High is robust.",
         .result = x->half_dose,
         .base = b != NULL ? b->half_dose : NULL,
         .better = ATS_BETTER_MORE,
         .log_scale = true,
         .beyond = x->half_beyond,
         .base_beyond = b != NULL ? b->half_beyond : NULL},
        {.id = "maptol",
         .title = "Tolerance before any edit",
         .unit = "rows",
         .reading = "How many rows with the target's mean weight would take half of everything: "
                    "large where the target holds little of the route.",
         .result = x->tolerance,
         .base = b != NULL ? b->tolerance : NULL,
         .better = ATS_BETTER_NEITHER,
         .log_scale = true},
        {.id = "mapmass",
         .title = "Target mass before any edit",
         .unit = "share of the weight",
         .reading =
             "Geometric mean over samples and probes. Heads that never look at the target have "
             "little to lose.",
         .result = x->target_mass,
         .base = b != NULL ? b->target_mass : NULL,
         .better = ATS_BETTER_MORE},
        {.id = "mapsink",
         .title = "Sink mass before any edit",
         .unit = "share of the weight",
         .reading =
             "Weight on the first rows and on the null route: a head that rests there is not "
             "retrieving.",
         .result = x->sink_mass,
         .base = b != NULL ? b->sink_mass : NULL,
         .better = ATS_BETTER_NEITHER},
    };
    ats_page_section(page, "maps", "Layers and heads");
    if (page->base != NULL && b == NULL)
        ats_text_add(&page->text,
                     "<p class=\"none\">The baseline has other layers or heads: no maps of "
                     "it and no differences.</p>\n");
    if (page->compact)
        ats_text_add(&page->text,
                     "<p class=\"none\">%lld layers of %lld heads are too many for tooltips and "
                     "tables of numbers on one page: the maps show colours alone. The numbers are "
                     "in the result, for any reader of HDF5.</p>\n",
                     (long long)x->n_layers, (long long)x->n_heads);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].result != NULL && (x->target_span >= 0 || all[i].result == x->sink_mass))
            draw_quantity(page, &all[i]);
    if (page->skipped.length > 0)
        ats_text_add(&page->text,
                     "<p class=\"none\">Left out, the page would get too large: %s.</p>\n",
                     page->skipped.data);
    ats_text_add(&page->text, "</section>\n");
}
