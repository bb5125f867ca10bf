#include <math.h>
#include <stdio.h>

#include "report/html.h"
#include "report/page.h"
#include "report/svg.h"

/* The spans of one sample as stretches under the curve. */
static ats_code make_bands(ats_page *page, ats_svg_band **out)
{
    const ats_page_options *options = page->options;
    ats_code rc = ATS_NEW(page->text.arena, options->n_spans, out, page->text.err);
    for (int64_t i = 0; i < options->n_spans && rc == ATS_OK; i++)
        (*out)[i] =
            (ats_svg_band){options->spans[i].start, options->spans[i].stop, options->spans[i].name};
    return rc;
}

static void span_texts(ats_page *page)
{
    const ats_page_options *options = page->options;
    ats_text *text = &page->text;
    if (options->n_spans == 0) return;
    ats_text_add(text, "<p class=\"dim\">Shaded: the spans of sample ");
    ats_html_escape(text, options->span_sample);
    ats_text_add(text,
                 ".</p><div class=\"wide\" tabindex=\"0\"><table><tr><th scope=\"col\">span</th>"
                 "<th scope=\"col\">from</th><th scope=\"col\">to</th><th scope=\"col\">text</th>"
                 "</tr>\n");
    for (int64_t i = 0; i < options->n_spans; i++) {
        const ats_page_span *span = &options->spans[i];
        ats_text_add(text, "<tr><th scope=\"row\">");
        ats_html_escape(text, span->name);
        ats_text_add(text, "</th><td>%.3f</td><td>%.3f</td><td class=\"text\">", span->start,
                     span->stop);
        ats_html_escape(text, span->text != NULL ? span->text : "(no token text in the capture)");
        ats_text_add(text, "</td></tr>\n");
    }
    ats_text_add(text, "</table></div>\n");
}

static void draw_family(ats_page *page, const ats_page_family *family, int64_t index,
                        const ats_svg_band *bands)
{
    const ats_page_curve *c = &family->curve[ATS_PAGE_AT];
    ats_svg_series series[2];
    double *kept = NULL, low = 0, high = 0, top = 1;
    int64_t n = 0;
    ats_text *text = &page->text;
    if (text->rc == ATS_OK) text->rc = ATS_NEW(text->arena, c->n, &kept, text->err);
    if (text->rc != ATS_OK) return;
    for (int64_t i = 0; i < c->n; i++) kept[i] = exp(c->treatment[i]);
    if (ats_svg_extent(c->n, kept, &low, &high))
        series[n++] = (ats_svg_series){"target weight kept", "treatment", c->n, c->x, kept};
    top = fmax(top, high);
    if (ats_svg_extent(c->n, c->change, &low, &high))
        series[n++] = (ats_svg_series){"relative output change", "base", c->n, c->x, c->change};
    top = fmax(top, high);
    char id[32], title[160];
    snprintf(id, sizeof id, "w%lld", (long long)index);
    snprintf(title, sizeof title, "%s: a hidden window slides over the context", family->name);
    ats_text_add(text, "<figure><figcaption>");
    ats_html_escape(text, title);
    ats_text_add(text, "</figcaption>\n");
    ats_svg_draw_curves(text,
                        &(ats_svg_curves){.id = id,
                                          .title = title,
                                          .x_label = "start of the window, share of the context",
                                          .y_label = "share",
                                          .y_low = 0,
                                          .y_high = fmin(top, 1e3) * 1.02,
                                          .n_series = n,
                                          .series = series,
                                          .n_bands = page->options->n_spans,
                                          .bands = bands});
    ats_text_add(text, "</figure>\n");
}

void ats_page_profile(ats_page *page)
{
    const ats_page_result *x = page->result;
    ats_svg_band *bands = NULL;
    bool any = false;
    for (int64_t f = 0; f < x->n_families; f++) any |= x->families[f].curve[ATS_PAGE_AT].n > 0;
    if (!any) return;
    if (page->text.rc == ATS_OK) page->text.rc = make_bands(page, &bands);
    if (page->text.rc != ATS_OK) return;
    ats_page_section(page, "profile", "Occlusion profile");
    ats_text_add(&page->text,
                 "<p class=\"dim\">What happens when a window of the context is hidden. "
                 "Output change is large where the context carries the answer; the target "
                 "gains weight when its rivals are hidden.</p><div class=\"grid3\">\n");
    for (int64_t f = 0; f < x->n_families; f++)
        if (x->families[f].curve[ATS_PAGE_AT].n > 0) draw_family(page, &x->families[f], f, bands);
    ats_text_add(&page->text, "</div>\n");
    span_texts(page);
    ats_text_add(&page->text, "</section>\n");
}
