#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html.h"
#include "report/page.h"
#include "report/svg.h"

static const char *const part_names[ATS_N_PARTS] = {"removal", "intrusion", "dilution", "reroute",
                                                    "payload"};

/* Share of the target's weight that is kept: exp of the mean log shift. */
static void to_kept(int64_t n, const double *shift, double *kept)
{
    for (int64_t i = 0; i < n; i++) kept[i] = exp(shift[i]);
}

static const ats_page_family *find_family(const ats_page_result *result, const char *name)
{
    for (int64_t f = 0; result != NULL && f < result->n_families; f++)
        if (strcmp(result->families[f].name, name) == 0) return &result->families[f];
    return NULL;
}

static const struct {
    const char *id, *label;
} sweeps[ATS_PAGE_N_CURVES] = {
    {"dose", "dose"},
    {"depth", "depth of the insertion: 0 first row, 1 before the probes"},
    {"at", "start of the hidden window, share of the context"}};

enum { ROLES = 5 };

/* One family's curve over one swept number; colours by role, the baseline's beside it. */
static void draw_curve(ats_page *page, const ats_page_family *family, int which, int64_t index)
{
    const ats_page_curve *c = &family->curve[which];
    const ats_page_family *base = find_family(page->base, family->name);
    const ats_page_curve *b = base != NULL ? &base->curve[which] : NULL;
    const double *sources[ROLES] = {c->treatment, c->control, c->worst};
    const double *xs[ROLES] = {c->x, c->x, c->x};
    int64_t counts[ROLES] = {c->n, c->n, c->n};
    static const char *const labels[ROLES] = {"treatment", "control twin", "weakest head",
                                              "baseline treatment", "law 1/(1+nr)"};
    static const char *const styles[ROLES] = {"treatment", "control", "worst", "base", "law"};
    ats_svg_series series[ROLES];
    int64_t n_series = 0;
    double top = 1;
    if (b != NULL && b->n > 0) {
        sources[3] = b->treatment;
        xs[3] = b->x;
        counts[3] = b->n;
    }
    if (which == ATS_PAGE_DOSE && family->law != NULL) {
        sources[4] = family->law;
        xs[4] = c->x;
        counts[4] = c->n;
    }
    for (int s = 0; s < ROLES; s++) {
        double *kept = NULL, low = 0, high = 0;
        if (counts[s] == 0 || !ats_svg_extent(counts[s], sources[s], &low, &high)) continue;
        if (page->text.rc == ATS_OK)
            page->text.rc = ATS_NEW(page->text.arena, counts[s], &kept, page->text.err);
        if (page->text.rc != ATS_OK) return;
        to_kept(counts[s], sources[s], kept);
        if (ats_svg_extent(counts[s], kept, &low, &high)) top = fmax(top, high);
        series[n_series++] = (ats_svg_series){labels[s], styles[s], counts[s], xs[s], kept};
    }
    char id[40], title[160];
    snprintf(id, sizeof id, "f%lld%s", (long long)index, sweeps[which].id);
    snprintf(title, sizeof title, "%s: target weight kept against %s", family->name,
             sweeps[which].id);
    const ats_svg_curves plot = {.id = id,
                                 .title = title,
                                 .x_label = sweeps[which].label,
                                 .y_label = "target weight kept (geometric mean)",
                                 .log_x = which == ATS_PAGE_DOSE && c->x[0] > 0 &&
                                          c->x[c->n - 1] >= 4 * c->x[0],
                                 .y_low = 0,
                                 .y_high = fmin(top, 1e3) * 1.02,
                                 .n_series = n_series,
                                 .series = series};
    ats_text_add(&page->text, "<figure><figcaption>");
    ats_html_escape(&page->text, family->name);
    ats_text_add(&page->text, "</figcaption>\n");
    ats_svg_draw_curves(&page->text, &plot);
    ats_text_add(&page->text,
                 "<details><summary>numbers</summary><div class=\"wide\" tabindex=\"0\"><table>"
                 "<tr><th scope=\"col\">%s</th>",
                 sweeps[which].id);
    for (int64_t s = 0; s < n_series; s++)
        ats_html_element(&page->text, "th", NULL, series[s].label);
    ats_text_add(&page->text, "</tr>\n");
    for (int64_t i = 0; i < c->n; i++) {
        ats_text_add(&page->text, "<tr><td>%.4g</td>", c->x[i]);
        for (int64_t s = 0; s < n_series; s++) {
            ats_text_add(&page->text, "<td>");
            ats_html_number(&page->text, i < series[s].n ? series[s].y[i] : (double)NAN);
            ats_text_add(&page->text, "</td>");
        }
        ats_text_add(&page->text, "</tr>\n");
    }
    ats_text_add(&page->text, "</table></div></details></figure>\n");
}

static void draw_curves(ats_page *page, int which, const char *anchor, const char *heading,
                        const char *reading)
{
    const ats_page_result *x = page->result;
    bool any = false;
    for (int64_t f = 0; f < x->n_families; f++) any |= x->families[f].curve[which].n > 0;
    if (!any || x->target_span < 0) return;
    ats_page_section(page, anchor, heading);
    ats_html_element(&page->text, "p", "dim", reading);
    ats_text_add(&page->text, "<div class=\"grid3\">\n");
    for (int64_t f = 0; f < x->n_families; f++)
        if (x->families[f].curve[which].n > 0) draw_curve(page, &x->families[f], which, f);
    ats_text_add(&page->text, "</div></section>\n");
}

static void draw_parts(ats_page *page)
{
    const ats_page_result *x = page->result;
    const char **names = NULL;
    double *values = NULL;
    ats_text *text = &page->text;
    if (text->rc == ATS_OK) text->rc = ATS_NEW(text->arena, x->n_families, &names, text->err);
    if (text->rc == ATS_OK)
        text->rc = ATS_NEW(text->arena, x->n_families * ATS_N_PARTS, &values, text->err);
    if (text->rc != ATS_OK) return;
    double high = 0;
    for (int64_t f = 0; f < x->n_families; f++) {
        names[f] = x->families[f].name;
        double total = 0;
        for (int p = 0; p < ATS_N_PARTS; p++) {
            values[f * ATS_N_PARTS + p] = x->families[f].share[p];
            if (values[f * ATS_N_PARTS + p] > 0) total += values[f * ATS_N_PARTS + p];
        }
        high = fmax(high, total);
    }
    if (!(high > 0)) return;
    ats_page_section(page, "parts", "What changed the outputs");
    ats_text_add(text,
                 "<p class=\"dim\">Mean share of each part of the output's change: weight taken "
                 "away with removed keys, weight given to new ones, weight scaled down, weight "
                 "moved among the survivors, and changed values. The five parts sum to the change "
                 "as vectors; the shares are of their lengths.</p><figure class=\"bars\">\n");
    ats_svg_draw_bars(text, &(ats_svg_bars){.id = "parts",
                                            .title = "Parts of the output change per perturbation",
                                            .n_rows = x->n_families,
                                            .n_parts = ATS_N_PARTS,
                                            .rows = names,
                                            .parts = part_names,
                                            .values = values,
                                            .high = high,
                                            .unit = "share of the parts' lengths"});
    ats_page_table(page, "numbers", ATS_N_PARTS, part_names, x->n_families, names, values);
    ats_text_add(text, "</figure></section>\n");
}

void ats_page_families(ats_page *page)
{
    draw_curves(
        page, ATS_PAGE_DOSE, "dose", "Dose curves",
        "How much of its weight the target keeps as the dose grows: mean over heads, samples and "
        "the other swept parameters; the control twin inserts the same number of rows without "
        "the property that is tested. A treatment that falls below its control is harmed by "
        "what was inserted, not by its amount.");
    draw_curves(page, ATS_PAGE_DEPTH, "position", "Position curve",
                "The same against the depth of the insertion.");
    draw_parts(page);
}
