#include <math.h>

#include "report/html.h"
#include "report/page.h"

static void route_table(ats_page *page, const ats_page_cell *cell)
{
    const ats_page_result *x = page->result;
    ats_text *text = &page->text;
    ats_text_add(text,
                 "<div class=\"wide\" tabindex=\"0\"><table><tr><th scope=\"col\">weight on</th>");
    for (int64_t s = 0; s < x->n_spans; s++) ats_html_element(text, "th", NULL, x->spans[s]);
    ats_text_add(text, "</tr>\n");
    for (int side = 0; side < 2; side++) {
        const double *mass = side == 0 ? cell->before : cell->after;
        ats_text_add(text, "<tr><th scope=\"row\">%s</th>", side == 0 ? "before" : "after");
        for (int64_t s = 0; s < x->n_spans; s++) {
            ats_text_add(text, "<td>");
            ats_html_number(text, mass[s]);
            ats_text_add(text, "</td>");
        }
        ats_text_add(text, "</tr>\n");
    }
    ats_text_add(text, "</table></div>\n");
}

/* A word of a shell command: quoted when it holds more than plain characters. */
static void shell_word(ats_text *text, const char *word)
{
    ats_text_add(text, "&#39;");
    for (const char *c = word; *c != '\0'; c++) {
        const char one[2] = {*c, '\0'};
        if (*c == '\'')
            ats_text_add(text, "&#39;\\&#39;&#39;");
        else if ((unsigned char)*c < 0x80)
            ats_html_escape(text, one);
        else
            ats_text_add(text, "%c", *c);
    }
    ats_text_add(text, "&#39;");
}

void ats_page_worst(ats_page *page)
{
    const ats_page_result *x = page->result;
    ats_text *text = &page->text;
    ats_page_section(page, "worst", "Weakest cells");
    if (x->n_worst == 0) ats_text_add(text, "<p class=\"none\">No cell has a number.</p>\n");
    for (int64_t i = 0; i < x->n_worst; i++) {
        const ats_page_cell *cell = &x->worst[i];
        ats_text_add(text, "<h3>");
        ats_html_escape(text, cell->variant);
        ats_text_add(text, "</h3><p>sample ");
        ats_html_escape(text, cell->sample);
        ats_text_add(text, ", layer %lld, head %lld: the target's log mass moves by ",
                     (long long)x->layers[cell->layer], (long long)x->heads[cell->head]);
        ats_html_number(text, cell->shift);
        ats_text_add(text, " nats.</p>\n");
        route_table(page, cell);
        ats_text_add(text, "<code class=\"cmd\">attnstress explain ");
        shell_word(text, x->path);
        ats_text_add(text, " --case %lld --layer %lld --head %lld", (long long)cell->case_index,
                     (long long)x->layers[cell->layer], (long long)x->heads[cell->head]);
        if (x->n_probes > 1) ats_text_add(text, " --probe %lld", (long long)cell->probe);
        ats_text_add(text, "</code>\n");
    }
    ats_text_add(text, "</section>\n");
}
