/* Markdown and CSV: the same rows for pull requests and spreadsheets. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare_private.h"

/* Text inside a Markdown table: no markup, no cell of its own. */
static void add_plain(ats_text *t, const char *value)
{
    for (const char *c = value; *c != '\0'; c++)
        ats_text_add(t, strchr("\\`*_{}[]<>#|&~", *c) != NULL ? "\\%c" : "%c", *c);
}

static void add_numbers(ats_text *t, const ats_compare_row *row, bool exact)
{
    const ats_compare_numbers *x = &row->numbers;
    char a[32], b[32], d[32], low[32], high[32];
    ats_text_add(t, " | %s | %s | %s", ats_compare_number(x->base, a),
                 ats_compare_number(x->candidate, b), ats_compare_number(x->difference, d));
    if (!exact && x->n >= 2)
        ats_text_add(t, " \\[%s, %s\\] | %.3g", ats_compare_number(x->interval.low, low),
                     ats_compare_number(x->interval.high, high), row->p_adjusted);
    else
        ats_text_add(t, " | -");
    ats_text_add(t, " | %lld |\n", (long long)x->n);
}

static void markdown_rows(ats_text *t, const ats_comparison *c, int64_t first, int64_t last)
{
    ats_text_add(t, "| | verdict | base | candidate | difference | p | n |\n"
                    "|---|---|--:|--:|--:|--:|--:|\n");
    for (int64_t i = first; i < last; i++) {
        const ats_compare_row *row = &c->rows[i];
        const bool claims = ats_compare_claims(&row->numbers, c->alpha);
        ats_text_add(t, "| ");
        add_plain(t, row->name);
        ats_text_add(t, " | %s",
                     row->gate == NULL                   ? (claims ? "" : "\\~")
                     : row->claim == ATS_CLAIM_REGRESSED ? "**regressed**"
                                                         : ats_claim_name(row->claim));
        add_numbers(t, row, c->exact);
    }
    ats_text_add(t, "\n");
}

static void markdown_worst(ats_text *t, const ats_comparison *c)
{
    if (c->n_worst == 0) return;
    ats_text_add(t, "Worst heads (log mass shift of ");
    add_plain(t, c->target);
    ats_text_add(t, ", nats):\n\n| layer | head | perturbation | base | candidate | difference | q "
                    "| explain |\n|--:|--:|---|--:|--:|--:|--:|---|\n");
    for (int64_t i = 0; i < c->n_worst; i++) {
        const ats_compare_cell *w = &c->worst[i];
        char a[32], b[32], d[32];
        ats_text_add(t, "| %lld | %lld | ", (long long)c->layers[w->l], (long long)c->heads[w->h]);
        add_plain(t, c->what[w->what]);
        ats_text_add(t, " | %s | %s | %s | %.3g | `%s` |\n", ats_compare_number(w->numbers.base, a),
                     ats_compare_number(w->numbers.candidate, b),
                     ats_compare_number(w->numbers.difference, d), w->q,
                     w->explain != NULL && strpbrk(w->explain, "`|") == NULL ? w->explain : "-");
    }
    ats_text_add(t, "\n");
}

ats_code ats_compare_markdown(ats_arena *arena, const ats_comparison *c, const char **out,
                              ats_err *err)
{
    enum { SHOWN = 50 };
    ats_text text = {.arena = arena, .err = err}, *t = &text;
    ats_text_add(t, "### attnstress: %s\n\n", c->verdict);
    add_plain(t, c->sentence);
    ats_text_add(t, ". Suite ");
    add_plain(t, c->suite);
    ats_text_add(t, ", %lld cases in %lld clusters; baseline ", (long long)c->n_cases,
                 (long long)c->n_clusters);
    add_plain(t, c->base);
    ats_text_add(t, " (%.12s), candidate ", c->base_hash);
    add_plain(t, c->candidate);
    ats_text_add(t, " (%.12s); seed %llu.\n\n", c->candidate_hash, (unsigned long long)c->seed);
    if (c->n_gates > 0) markdown_rows(t, c, 0, c->n_gates);
    if (c->n_rows > c->n_gates) {
        ats_text_add(t, "Mean log mass shift, nats (base route: log mass):\n\n");
        markdown_rows(t, c, c->n_gates, c->n_rows);
    }
    markdown_worst(t, c);
    for (int64_t i = 0; i < c->n_stored && i < SHOWN; i++) {
        const ats_compare_finding *f = &c->findings[i];
        ats_text_add(t, "- %s", f->allowed ? "allowed: " : "");
        add_plain(t, f->sample);
        ats_text_add(t, " ");
        if (f->variant != NULL) add_plain(t, f->variant);
        ats_text_add(t, ": ");
        add_plain(t, f->text);
        ats_text_add(t, "\n");
    }
    if (c->n_findings > SHOWN)
        ats_text_add(t, "- and %lld more\n", (long long)(c->n_findings - SHOWN));
    return ats_text_done(t, out);
}

/* RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe. */
static void csv_text(ats_text *t, const char *value)
{
    ats_text_add(t, "\"%s", value[0] != '\0' && strchr("=+-@", value[0]) != NULL ? "'" : "");
    for (const char *c = value; *c != '\0'; c++) ats_text_add(t, *c == '"' ? "\"\"" : "%c", *c);
    ats_text_add(t, "\"");
}

static void csv_number(ats_text *t, double value)
{
    if (isnan(value))
        ats_text_add(t, ",");
    else
        ats_text_add(t, ",%.9g", value);
}

static void csv_numbers(ats_text *t, const ats_compare_numbers *x, double adjusted)
{
    csv_number(t, x->base);
    csv_number(t, x->candidate);
    csv_number(t, x->difference);
    csv_number(t, x->interval.low);
    csv_number(t, x->interval.high);
    csv_number(t, x->p);
    csv_number(t, adjusted);
    ats_text_add(t, ",%lld,", (long long)x->n);
}

ats_code ats_compare_csv(ats_arena *arena, const ats_comparison *c, const char **out, ats_err *err)
{
    ats_text text = {.arena = arena, .err = err}, *t = &text;
    const int64_t cells = c->cells != NULL ? c->n_what * c->n_layers * c->n_heads : 0;
    ats_text_add(t, "kind,name,layer,head,base,candidate,difference,low,high,p,p_adjusted,n,"
                    "verdict\r\n");
    for (int64_t i = 0; i < c->n_rows; i++) {
        const ats_compare_row *row = &c->rows[i];
        ats_text_add(t, "%s,", row->gate != NULL ? "gate" : "summary");
        csv_text(t, row->name);
        ats_text_add(t, ",,");
        csv_numbers(t, &row->numbers, row->p_adjusted);
        ats_text_add(t, "%s\r\n", row->gate != NULL ? ats_claim_name(row->claim) : "");
    }
    for (int64_t i = 0; i < cells; i++) {
        const ats_compare_cell *x = &c->cells[i];
        ats_text_add(t, "cell,");
        csv_text(t, c->what[x->what]);
        ats_text_add(t, ",%lld,%lld", (long long)c->layers[x->l], (long long)c->heads[x->h]);
        csv_numbers(t, &x->numbers, x->q);
        ats_text_add(t, "\r\n");
    }
    return ats_text_done(t, out);
}
