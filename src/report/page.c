#include "report/page.h"

#include <string.h>

#include "report/html.h"

void ats_page_table(ats_page *page, const char *summary, int64_t n_columns,
                    const char *const *columns, int64_t n_rows, const char *const *rows,
                    const double *values)
{
    ats_text *text = &page->text;
    ats_text_add(text, "<details>");
    ats_html_element(text, "summary", NULL, summary);
    ats_text_add(text, "<div class=\"wide\" tabindex=\"0\"><table><tr><th></th>");
    for (int64_t c = 0; c < n_columns; c++) ats_html_element(text, "th", NULL, columns[c]);
    ats_text_add(text, "</tr>\n");
    for (int64_t r = 0; r < n_rows; r++) {
        ats_text_add(text, "<tr><th scope=\"row\">");
        ats_html_escape(text, rows[r]);
        ats_text_add(text, "</th>");
        for (int64_t c = 0; c < n_columns; c++) {
            ats_text_add(text, "<td>");
            ats_html_number(text, values[r * n_columns + c]);
            ats_text_add(text, "</td>");
        }
        ats_text_add(text, "</tr>\n");
    }
    ats_text_add(text, "</table></div></details>\n");
}

static void describe(ats_text *text, const char *term, const char *value)
{
    if (value[0] == '\0') return;
    ats_html_element(text, "dt", NULL, term);
    ats_html_element(text, "dd", NULL, value);
}

static void describe_result(ats_text *text, const char *heading, const ats_page_result *x)
{
    ats_text_add(text, "<div>");
    if (heading != NULL) ats_html_element(text, "h3", NULL, heading);
    ats_text_add(text, "<dl>");
    describe(text, "result", x->path);
    describe(text, "model", x->model);
    describe(text, "checkpoint", x->checkpoint);
    describe(text, "captures", x->captures);
    describe(text, "target", x->target);
    describe(text, "suite hash", x->suite_hash);
    describe(text, "backend", x->backend);
    describe(text, "attnstress", x->version);
    ats_text_add(text,
                 "<dt>size</dt><dd>%lld cases (%lld skipped, %lld failed), %lld samples, "
                 "%lld layers, %lld heads</dd></dl></div>\n",
                 (long long)x->n_cases, (long long)x->n_skipped, (long long)x->n_failed,
                 (long long)x->n_samples, (long long)x->n_layers, (long long)x->n_heads);
}

void ats_page_section(ats_page *page, const char *id, const char *title)
{
    ATS_ASSERT(page->n_sections < ATS_PAGE_SECTIONS);
    page->sections[page->n_sections].id = id;
    page->sections[page->n_sections++].title = title;
    ats_text_add(&page->text, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
}

static void head(const ats_page *page, ats_text *text)
{
    ats_text_add(text, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                       "<meta name=\"color-scheme\" content=\"light dark\">"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "style-src 'unsafe-inline'; img-src data:\">"
                       "<link rel=\"icon\" href=\"data:,\"><title>attnstress: ");
    ats_html_escape(text, page->result->suite);
    ats_text_add(text, "</title><style>");
    for (const char *const *piece = ats_page_style; *piece != NULL; piece++)
        ats_text_add(text, "%s", *piece);
    ats_text_add(text, "</style></head><body>\n<header><h1>Suite ");
    ats_html_escape(text, page->result->suite);
    ats_text_add(text, "</h1>\n<p class=\"verdict %s\" role=\"status\">", page->options->tone);
    ats_html_escape(text, page->options->verdict);
    ats_text_add(text, "</p>\n<div class=\"grid3\">\n");
    if (page->base != NULL) describe_result(text, "baseline", page->base);
    describe_result(text, page->base != NULL ? "candidate" : NULL, page->result);
    ats_text_add(text,
                 "</div>\n<p class=\"dim\">Routes are weights, outputs are weights times values; "
                 "neither is the model's answer. Every number here is for frozen upstream "
                 "layers: later layers and tokens do not react to an edit.</p>\n"
                 "<nav aria-label=\"sections\"><ul>");
    for (int64_t i = 0; i < page->n_sections; i++)
        ats_text_add(text, "<li><a href=\"#%s\">%s</a></li>", page->sections[i].id,
                     page->sections[i].title);
    ats_text_add(text, "</ul></nav></header>\n<main>\n");
}

static void gates(ats_page *page)
{
    const ats_page_options *options = page->options;
    ats_text *text = &page->text;
    ats_page_section(page, "gates", "Gates");
    if (options->n_gates == 0) {
        ats_text_add(text,
                     "<p class=\"none\">The suite states no gate that can be judged here.</p>\n");
    } else {
        ats_text_add(text,
                     "<div class=\"wide\" tabindex=\"0\"><table><tr><th scope=\"col\">gate</th>"
                     "<th scope=\"col\">verdict</th><th scope=\"col\"></th></tr>\n");
        for (int64_t g = 0; g < options->n_gates; g++) {
            const ats_page_gate *gate = &options->gates[g];
            ats_text_add(text, "<tr><th scope=\"row\">");
            ats_html_escape(text, gate->name);
            ats_text_add(text, "</th>");
            ats_html_element(text, "td", gate->tone, gate->verdict);
            ats_html_element(text, "td", "text", gate->sentence);
            ats_text_add(text, "</tr>\n");
        }
        ats_text_add(text, "</table></div>\n");
    }
    if (options->comparison != NULL) {
        ats_text_add(
            text, "<details><summary>the whole comparison as text</summary><pre tabindex=\"0\">");
        for (const char *line = options->comparison; *line != '\0';) {
            const size_t length = strcspn(line, "\n");
            const char *copy = NULL;
            if (text->rc == ATS_OK)
                text->rc =
                    ats_arena_printf(text->arena, &copy, text->err, "%.*s", (int)length, line);
            if (text->rc != ATS_OK) return;
            ats_html_escape(text, copy);
            ats_text_add(text, "\n");
            line += length + (line[length] == '\n');
        }
        ats_text_add(text, "</pre></details>\n");
    }
    ats_text_add(text, "</section>\n");
}

bool ats_page_takes(ats_page *page, const char *title, int64_t n_maps)
{
    const int64_t cells = page->result->n_layers * page->result->n_heads * n_maps;
    const int64_t bytes = cells * (page->compact ? ATS_PAGE_COLOUR : ATS_PAGE_CELL);
    if (bytes <= page->room) {
        page->room -= bytes;
        return true;
    }
    ats_text_add(&page->skipped, "%s%s", page->skipped.length > 0 ? ", " : "", title);
    return false;
}

/* Would every map fit with its tooltips and numbers? */
static bool is_compact(const ats_page_result *x, const ats_page_result *base)
{
    enum { MAPS = 5 };
    const int64_t cells = x->n_layers * x->n_heads;
    const int64_t maps = (base != NULL ? 3 * MAPS : MAPS) + (x->label != NULL ? 2 : 0);
    return cells * maps * ATS_PAGE_CELL > ATS_PAGE_ROOM;
}

ats_code ats_page_text(ats_arena *arena, const ats_page_result *result, const ats_page_result *base,
                       const ats_page_options *options, const char **out, ats_err *err)
{
    ats_page page = {
        .text = {.arena = arena, .err = err}, .result = result, .base = base, .options = options};
    page.skipped = page.text;
    page.compact = is_compact(result, base);
    page.room = ATS_PAGE_ROOM;
    ats_text whole = {.arena = arena, .err = err};
    const char *sections = NULL;
    gates(&page);
    ats_page_maps(&page);
    ats_page_sharpness(&page);
    ats_page_families(&page);
    ats_page_profile(&page);
    ats_page_worst(&page);
    const ats_code rc = ats_text_done(&page.text, &sections);
    if (rc != ATS_OK) return rc;
    head(&page, &whole);
    ats_text_add(&whole, "%s</main></body></html>\n", sections);
    return ats_text_done(&whole, out);
}
