#include <math.h>
#include <string.h>

#include "cli/explain_print.h"

enum { INSERTED_LINES = 16 };

static void print_head(FILE *f, const ats_explanation *e)
{
    fprintf(f, "case %lld: sample %s, variant %s\n", (long long)e->case_index, e->sample,
            e->variant);
    fprintf(f, "  %s, %s%s%s", e->kind, e->arm, e->mode[0] ? ", positions " : "", e->mode);
    if (!isnan(e->dose)) fprintf(f, ", dose %.6g", e->dose);
    fprintf(f, "\n");
    fprintf(f, "  layer %lld, head %lld, probe %lld (number %lld of the sample, position %lld)\n",
            (long long)e->layer, (long long)e->head, (long long)e->probe, (long long)e->probe_index,
            (long long)e->probe_position);
    fprintf(f, "  suite %s, capture %s (%s)\n\n", e->suite, e->capture, e->model);
}

static void print_contract(FILE *f, const ats_explanation *e)
{
    fprintf(f, "logit = %.9g * (q . k)", e->scale);
    if (e->softcap > 0) fprintf(f, ", capped: %g tanh(x / %g)", e->softcap, e->softcap);
    if (e->temperature != 1) fprintf(f, ", divided by tau = %g", e->temperature);
    if (e->window > 0) fprintf(f, "; window %lld", (long long)e->window);
    if (e->chunk > 0) fprintf(f, "; chunk %lld", (long long)e->chunk);
    if (!isnan(e->sink)) fprintf(f, "; sink logit %.6f", e->sink);
    fprintf(f, "\n\nedit script (%lld rows become %lld)\n%s", (long long)e->n_keys,
            (long long)e->length, e->script);
    if (e->script[0] && e->script[strlen(e->script) - 1] != '\n') fprintf(f, "\n");
    if (e->query_delta != 0)
        fprintf(f, "the probe moves from position %lld to %lld\n", (long long)e->probe_position,
                (long long)(e->probe_position + e->query_delta));
}

static void print_routes(FILE *f, const ats_explanation *e)
{
    fprintf(f, "\nroute by span: best logit, log-sum-exp (nats) and mass = exp(LSE - L)\n");
    fprintf(f, "  %-14s %5s |%9s %9s %8s |%9s %9s %8s\n", "", "rows", "best", "LSE", "mass",
            "best'", "LSE'", "mass'");
    for (int64_t s = 0; s < e->n_spans; s++) {
        const ats_explain_span *span = &e->spans[s];
        fprintf(f, "  %-14.14s %5lld |", span->name, (long long)span->rows);
        if (strcmp(span->name, "inserted") == 0)
            fprintf(f, "%9s %9s %8s |", "", "", "");
        else
            fprintf(f, "%9.4f %9.4f %8.6f |", span->base.best, span->base.lse, span->base.mass);
        fprintf(f, "%9.4f %9.4f %8.6f\n", span->variant.best, span->variant.lse,
                span->variant.mass);
    }
    fprintf(f, "  whole route: L = %.6f over %lld keys, L' = %.6f over %lld keys\n", e->lse_base,
            (long long)e->legal_base, e->lse, (long long)e->legal);
    if (!isnan(e->sink))
        fprintf(f, "  null route: exp(sink - L) = %.6f, exp(sink - L') = %.6f\n", e->null_base,
                e->null_variant);
}

static void print_split(FILE *f, const ats_explanation *e)
{
    const double competition = e->lse_base - e->lse;
    fprintf(f, "\nlse_shift = L' - L = %.6f - %.6f = %+.6f nats\n", e->lse, e->lse_base,
            e->lse - e->lse_base);
    if (e->target < 0) return;
    const ats_explain_span *t = &e->spans[e->target];
    fprintf(f, "what happened to the mass of %s\n", t->name);
    fprintf(f, "  own logits   LSE' - LSE = %.6f - %.6f = %+.6f\n", t->variant.lse, t->base.lse,
            t->own_logit_shift);
    fprintf(f, "  competition  -(L' - L)                = %+.6f\n", competition);
    fprintf(f, "  sum                                   = %+.6f\n",
            t->own_logit_shift + competition);
    fprintf(f, "  log mass' - log mass = log %.6f - log %.6f = %+.6f\n", t->variant.mass,
            t->base.mass, t->log_mass_shift);
    fprintf(f, "  retention = exp(%+.6f) = %.6f\n", t->log_mass_shift, exp(t->log_mass_shift));
}

static void print_payload(FILE *f, const ats_explanation *e)
{
    double sum = 0;
    fprintf(f, "\nroute moved: tv %.6f, intrusion %.6f, removal %.6f\n", e->tv, e->intrusion,
            e->removal);
    fprintf(f, "output: |o| = %.6f, |o'| = %.6f, cosine %.6f, |o' - o| / |o| = %.6f\n",
            e->output_norm_base, e->output_norm, e->output_cosine, e->output_change);
    fprintf(f, "o' - o as a sum of five parts\n  %-10s %12s %12s\n", "", "norm", "<part,o>/|o|^2");
    for (int64_t p = 0; p < ATS_N_PARTS; p++) {
        fprintf(f, "  %-10s %12.6f %+14.6f\n", e->parts[p].name, e->parts[p].norm,
                e->parts[p].share);
        sum += e->parts[p].share;
    }
    fprintf(f, "  sum of the shares %+.6f = <o' - o, o> / |o|^2 = %+.6f\n", sum,
            e->output_cosine * e->output_norm / e->output_norm_base - 1);
    fprintf(f, "  |sum of the parts - (o' - o)| = %.2e\n", e->parts_residual);
}

/* A token on one line: control characters and quotes would break the table. At most 24 bytes,
 * and never half a character of UTF-8. */
static void print_token(FILE *f, const char *text)
{
    int64_t length = (int64_t)strnlen(text, 24);
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
    fputc('"', f);
    for (int64_t i = 0; i < length; i++)
        if (text[i] == '\n')
            fputs("\\n", f);
        else
            fputc((unsigned char)text[i] < 32 || text[i] == '"' ? '?' : text[i], f);
    fputc('"', f);
}

static void print_number(FILE *f, const char *format, double x)
{
    if (isnan(x))
        fprintf(f, "%10s", "-");
    else
        fprintf(f, format, x);
}

static void print_key(FILE *f, const ats_explain_key *key)
{
    if (key->key >= 0)
        fprintf(f, "  %8lld", (long long)key->key);
    else
        fprintf(f, "  row %4lld", (long long)(-2 - key->key));
    fprintf(f, " %9lld", (long long)key->position);
    print_number(f, "%10.4f", key->logit_base);
    print_number(f, "%10.6f", key->weight_base);
    print_number(f, "%10.4f", key->logit);
    print_number(f, "%10.6f", key->weight);
    fprintf(f, "  ");
    print_token(f, key->text);
    if (key->donor[0])
        fprintf(f, " %s:%lld", key->donor, (long long)key->donor_row);
    else if (key->span[0])
        fprintf(f, " %s", key->span);
    fprintf(f, "\n");
}

static void print_keys(FILE *f, const ats_explanation *e)
{
    const char *head = "       key  position     logit    weight    logit'   weight'\n";
    fprintf(f, "\nheaviest keys of either route (weight = exp(logit - L))\n%s", head);
    for (int64_t i = 0; i < e->n_top; i++) print_key(f, &e->top[i]);
    if (e->n_inserted == 0) return;
    fprintf(f, "\ninserted rows, with the donor sample and row they come from\n%s", head);
    for (int64_t i = 0; i < e->n_inserted && i < INSERTED_LINES; i++) print_key(f, &e->inserted[i]);
    if (e->n_inserted > INSERTED_LINES)
        fprintf(f, "  and %lld more\n", (long long)(e->n_inserted - INSERTED_LINES));
}

static void print_laws(FILE *f, const ats_explanation *e)
{
    const size_t room = 29; /* columns left on the line */
    fprintf(f, "\nlaws of this edit over the sample's probes: worst residual and its bound\n");
    for (int64_t i = 0; i < e->n_laws; i++) {
        const ats_law *law = &e->laws[i];
        if (law->rows == 0) continue;
        fprintf(f, "  %-23s %8.1e %8.1e  %s", law->name, law->residual, law->bound,
                ats_law_holds(law) ? "ok" : "FAIL");
        fprintf(f, "%s%s\n",
                strlen(law->statement) > room ? "\n      "
                : ats_law_holds(law)          ? "    "
                                              : "  ",
                law->statement);
    }
}

static bool same_number(const ats_explain_stored *s)
{
    return (isnan(s->stored) && isnan(s->computed)) || s->stored == s->computed ||
           fabs(s->stored - s->computed) <= s->bound;
}

/* Other spans' numbers are printed where they differ, and counted with the rest. */
static bool worth_a_line(const ats_explanation *e, const ats_explain_stored *s)
{
    if (!same_number(s)) return true;
    if (isnan(s->stored)) return false;
    const char *bracket = strchr(s->name, '[');
    if (bracket == NULL || strncmp(s->name, "delta", 5) == 0) return true;
    const char *target = e->target >= 0 ? e->spans[e->target].name : "inserted";
    const size_t length = strlen(target);
    return (strncmp(bracket + 1, target, length) == 0 && bracket[1 + length] == ']') ||
           strcmp(bracket, "[inserted]") == 0;
}

static void print_stored(FILE *f, const ats_explanation *e)
{
    if (e->n_stored == 0) {
        fprintf(f, "\nthe result keeps means over probes, so no stored number is this cell's\n");
        return;
    }
    fprintf(f, "\nstored in the result and computed here\n");
    for (int64_t i = 0; i < e->n_stored; i++) {
        const ats_explain_stored *s = &e->stored[i];
        if (worth_a_line(e, s))
            fprintf(f, "  %-30s %14.7g %14.7g  %s\n", s->name, s->stored, s->computed,
                    same_number(s) ? "same" : "DIFFERENT");
    }
    if (e->n_differ == 0)
        fprintf(f, "all %lld numbers compared agree within the bars of the two computations\n",
                (long long)e->n_stored);
    else
        fprintf(f, "%lld of %lld numbers differ by more than the two computations can\n",
                (long long)e->n_differ, (long long)e->n_stored);
}

void ats_explain_text(FILE *stream, const ats_explanation *e)
{
    print_head(stream, e);
    print_contract(stream, e);
    print_routes(stream, e);
    print_split(stream, e);
    print_payload(stream, e);
    print_keys(stream, e);
    print_laws(stream, e);
    print_stored(stream, e);
    fprintf(stream, "\nA frozen-upstream counterfactual: what the edit does to this head's route "
                    "and\noutput, not to the model's answer.\n");
}
