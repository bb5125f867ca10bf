/* Why routes are sharp: the label of every head, and what each cause explains by layer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"
#include "report/page_private.h"
#include "report/svg.h"

static const char *const cause_names[ATS_N_CAUSES] = {"alignment", "norm", "scale", "temperature",
                                                      "mask_or_sink"};

/* A label for every head. codes: [samples, layers,
 * heads, probes]. */
static void vote(const ats_page_result *x, const double *codes, int64_t n_samples)
{
    const int64_t cells = x->n_layers * x->n_heads;
    for (int64_t cell = 0; cell < cells; cell++) {
        int64_t votes[ATS_N_LABELS] = {0};
        for (int64_t s = 0; s < n_samples; s++)
            for (int64_t p = 0; p < x->n_probes; p++) {
                const double code = codes[(s * cells + cell) * x->n_probes + p];
                if (code >= 0 && code < ATS_CAUSE_UNDEFINED) votes[(int)code]++;
            }
        const ats_cause label = ats_diagnose_vote(votes);
        x->label[cell] = label != ATS_CAUSE_UNDEFINED ? (double)label : (double)NAN;
    }
}

ats_code ats_page_causes(ats_page_reader *r, ats_err *err)
{
    ats_page_result *x = r->result;
    const int64_t cells = x->n_layers * x->n_heads, row = cells * x->n_probes;
    ats_result_variable codes = {.values = NULL};
    int64_t count = 1;
    ats_code rc = ATS_OK;
    if (!ats_result_has(r->file, "base_sharpness_label")) goto out;
    for (int c = 0; c < ATS_N_CAUSES; c++) {
        char name[64];
        snprintf(name, sizeof name, "base_sharpness_%s", cause_names[c]);
        ATS_TRY(ATS_NEW(r->arena, cells, &x->cause[c], err));
        ATS_TRY(ats_page_base_map(r, name, 1, 0, false, x->cause[c], err));
    }
    ATS_TRY(ats_result_read(r->file, "base_sharpness_label", &codes, err));
    for (int i = 0; i < codes.rank; i++) count *= codes.extent[i];
    ATS_TRY(ATS_NEW(r->arena, cells, &x->label, err));
    vote(x, codes.values, row > 0 ? count / row : 0);
out:
    free(codes.values);
    return rc;
}

static const ats_svg_code codes[ATS_CAUSE_UNDEFINED] = {
    {"alignment", "A", "p0"},     {"norm", "N", "p1"},         {"scale", "S", "p2"},
    {"temperature", "T", "p3"},   {"mask_or_sink", "M", "p4"}, {"mixed", "~", "pm"},
    {"diffuse", "\xc2\xb7", "pd"}};

static void words_table(ats_page *page, const ats_page_result *x)
{
    ats_text *text = &page->text;
    if (page->compact) return;
    ats_text_add(text, "<details><summary>labels</summary><div class=\"wide\" tabindex=\"0\">"
                       "<table><tr><th scope=\"col\">layer</th>");
    for (int64_t h = 0; h < x->n_heads; h++)
        ats_text_add(text, "<th scope=\"col\">head %lld</th>", (long long)x->heads[h]);
    ats_text_add(text, "</tr>\n");
    for (int64_t l = 0; l < x->n_layers; l++) {
        ats_text_add(text, "<tr><th scope=\"row\">%lld</th>", (long long)x->layers[l]);
        for (int64_t h = 0; h < x->n_heads; h++) {
            const double label = x->label[l * x->n_heads + h];
            ats_text_add(text, "<td>%s</td>",
                         isnan(label) ? "\xe2\x80\x93" : codes[(int)label].word);
        }
        ats_text_add(text, "</tr>\n");
    }
    ats_text_add(text, "</table></div></details>\n");
}

static void draw_labels(ats_page *page, const ats_page_result *x, const char *id,
                        const char *caption)
{
    const ats_svg_map map = {.id = id,
                             .title = caption,
                             .row_name = "layer",
                             .column_name = "head",
                             .n_rows = x->n_layers,
                             .n_columns = x->n_heads,
                             .rows = x->layers,
                             .columns = x->heads,
                             .values = x->label,
                             .high = ATS_CAUSE_DIFFUSE,
                             .unit = "codes of causes",
                             .codes = codes,
                             .n_codes = ATS_CAUSE_UNDEFINED,
                             .compact = page->compact};
    ats_text_add(&page->text, "<figure><figcaption>%s</figcaption>\n", caption);
    ats_svg_heatmap(&page->text, &map);
    words_table(page, x);
    ats_text_add(&page->text, "</figure>\n");
}

/* Mean nats over the heads of each layer, [layers, causes]; returns the longest bar. */
static double layer_means(const ats_page_result *x, double *values)
{
    double most = 0;
    for (int64_t l = 0; l < x->n_layers; l++) {
        double total = 0;
        for (int c = 0; c < ATS_N_CAUSES; c++) {
            double sum = 0;
            int64_t n = 0;
            for (int64_t h = 0; h < x->n_heads; h++) {
                const double share = x->cause[c][l * x->n_heads + h];
                if (isnan(share)) continue;
                sum += share;
                n++;
            }
            values[l * ATS_N_CAUSES + c] = n > 0 ? sum / (double)n : (double)NAN;
            total += n > 0 ? sum / (double)n : 0;
        }
        most = fmax(most, total);
    }
    return most;
}

static void draw_layers(ats_page *page, const ats_page_result *x, const char *id,
                        const char *caption)
{
    ats_text *text = &page->text;
    const char **names = NULL;
    double *values = NULL;
    if (text->rc == ATS_OK) text->rc = ATS_NEW(text->arena, x->n_layers, &names, text->err);
    if (text->rc == ATS_OK)
        text->rc = ATS_NEW(text->arena, x->n_layers * ATS_N_CAUSES, &values, text->err);
    for (int64_t l = 0; l < x->n_layers && text->rc == ATS_OK; l++)
        text->rc = ats_arena_printf(text->arena, &names[l], text->err, "layer %lld",
                                    (long long)x->layers[l]);
    if (text->rc != ATS_OK) return;
    const double most = layer_means(x, values);
    ats_text_add(text, "<figure><figcaption>%s</figcaption>\n", caption);
    ats_svg_draw_bars(text, &(ats_svg_bars){.id = id,
                                            .title = caption,
                                            .n_rows = x->n_layers,
                                            .n_parts = ATS_N_CAUSES,
                                            .rows = names,
                                            .parts = cause_names,
                                            .values = values,
                                            .high = most,
                                            .unit = "nats"});
    ats_page_table(page, "numbers", ATS_N_CAUSES, cause_names, x->n_layers, names, values);
    ats_text_add(text, "</figure>\n");
}

void ats_page_sharpness(ats_page *page)
{
    const ats_page_result *x = page->result, *b = page->base;
    const bool pair = b != NULL && b->label != NULL;
    if (x->label == NULL) return;
    ats_page_section(page, "sharpness", "Why routes are sharp");
    ats_text_add(
        &page->text,
        "<p class=\"dim\">The cause that explains most of a head&#39;s sharpness before any "
        "edit, where it leads the next by 2.5; a head gets the label that more than half of "
        "its rows have, else it is mixed. Diffuse: there is less than a nat to explain. It "
        "says why the route is sharp, not whether it is right.</p><div class=\"grid3\">\n");
    if (ats_page_takes(page, "labels", pair ? 2 : 1)) {
        if (pair) draw_labels(page, b, "mapcauseb", "baseline");
        draw_labels(page, x, "mapcausec", pair ? "candidate" : "label of each head");
    } else {
        ats_text_add(&page->text, "<p class=\"none\">The map of labels is left out: the page would "
                                  "get too large.</p>\n");
    }
    if (pair) draw_layers(page, b, "causesb", "baseline: nats explained, mean over heads");
    draw_layers(page, x, "causesc",
                pair ? "candidate: nats explained, mean over heads"
                     : "nats explained, mean over heads");
    ats_text_add(&page->text, "</div></section>\n");
}
