#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare_private.h"

enum { NAME = 24, WIDTH = 80, SHOWN_FINDINGS = 12 };

/* Bytes of a well-formed UTF-8 character and the columns it takes: 0 for combining marks, 2 for
 * wide ones (East Asian Width W and F of Unicode 15, to whole blocks). */
static int step(const char *text, int *width)
{
    static const unsigned wide[][2] = {{0x1100, 0x115f},  {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                       {0xf900, 0xfaff},  {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                       {0xffe0, 0xffe6},  {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff},
                                       {0x20000, 0x3fffd}};
    const unsigned char *t = (const unsigned char *)text;
    const int bytes = t[0] < 0x80 ? 1 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : 4;
    unsigned code = bytes == 1 ? t[0] : t[0] & (0xffU >> (bytes + 1));
    for (int i = 1; i < bytes; i++) {
        if ((t[i] & 0xc0) != 0x80) return *width = 1;
        code = code << 6 | (t[i] & 0x3fU);
    }
    *width = code < 0x300 || code > 0x36f;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (code >= wide[i][0] && code <= wide[i][1]) *width = 2;
    return bytes;
}

static int columns(const char *text)
{
    int n = 0, width;
    while (*text != '\0') {
        text += step(text, &width);
        n += width;
    }
    return n;
}

/* The text in exactly `width` columns: cut with "...", or padded. */
static void add_cell(ats_text *out, const char *text, int width)
{
    const int n = columns(text);
    if (n <= width) {
        ats_text_add(out, "%s%*s", text, width - n, "");
        return;
    }
    int used = 0, next = 0;
    const char *end = text;
    for (const char *p = text; used <= width - 3; used += next) {
        end = p;
        p += step(p, &next);
    }
    used -= next;
    ats_text_add(out, "%.*s...%*s", (int)(end - text), text, width - 3 - used, "");
}

/* Words of a sentence over lines of WIDTH columns, further ones indented. */
static void add_wrapped(ats_text *out, const char *text, int indent)
{
    int at = indent;
    ats_text_add(out, "%*s", indent, "");
    while (*text != '\0') {
        const char *space = strchr(text, ' ');
        const int bytes = space != NULL ? (int)(space - text) : (int)strlen(text);
        char word[512];
        snprintf(word, sizeof word, "%.*s", bytes, text);
        const int n = columns(word);
        if (at > indent && at + 1 + n > WIDTH) {
            ats_text_add(out, "\n%*s", indent + 2, "");
            at = indent + 2;
        } else if (at > indent) {
            ats_text_add(out, " ");
            at++;
        }
        ats_text_add(out, "%.*s", bytes, text);
        at += n;
        text += bytes + (space != NULL);
    }
    ats_text_add(out, "\n");
}

static const char *colour_of(const char *verdict)
{
    if (strcmp(verdict, "regressed") == 0 || strcmp(verdict, "failed") == 0 ||
        strcmp(verdict, "differs") == 0)
        return "red";
    return strcmp(verdict, "inconclusive") == 0 ? "yellow" : "green";
}

static void add_head(ats_text *out, const ats_comparison *c)
{
    char line[512];
    const char *const names[] = {c->base_name, c->candidate_name};
    const char *const paths[] = {c->base, c->candidate},
                      *hashes[] = {c->base_hash, c->candidate_hash};
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "%-9s  %.200s (%.200s), hash %.12s",
                 i == 0 ? "baseline" : "candidate", paths[i], names[i], hashes[i]);
        add_wrapped(out, line, 0);
    }
    snprintf(line, sizeof line,
             "suite %.200s: %lld paired cases, %lld samples, %lld clusters, %lld layers, %lld "
             "heads, target %.100s",
             c->suite, (long long)c->n_cases, (long long)c->n_samples, (long long)c->n_clusters,
             (long long)c->n_layers, (long long)c->n_heads,
             c->target[0] != '\0' ? c->target : "none");
    add_wrapped(out, line, 0);
}

static void add_method(ats_text *out, const ats_comparison *c)
{
    char line[512];
    if (c->exact) {
        snprintf(line, sizeof line,
                 "exact: both results come from the same captures, so differences are no sample; "
                 "noise floor %g",
                 c->noise_floor);
        add_wrapped(out, line, 0);
        return;
    }
    snprintf(line, sizeof line,
             "n: clusters. [ ]: %g %% BCa interval, %lld resamples, seed %llu. p: %s; gates: after "
             "Holm. ~: nothing is claimed.",
             100 * (1 - c->alpha), (long long)c->resamples, (unsigned long long)c->seed,
             c->n_clusters < ATS_STAT_EXACT_CLUSTERS
                 ? "exact sign-flip test (fewer than 20 clusters)"
                 : "Wilcoxon signed-rank test");
    add_wrapped(out, line, 0);
}

static const char *p_text(double p, char out[32])
{
    if (isnan(p) || p < 1e-99)
        snprintf(out, 32, isnan(p) ? "-" : "0");
    else
        snprintf(out, 32, p < 0.001 ? "%.0e" : "%.3f", p);
    return out;
}

/* name(30) base(8) candidate(8) difference [interval](22) p(5) n(3), a blank between: 80 columns.
 */
static void add_row(ats_text *out, const char *name, const ats_compare_row *row,
                    const ats_comparison *c)
{
    const ats_compare_numbers *x = &row->numbers;
    const bool claims = ats_compare_claims(x, c->alpha);
    char a[32], b[32], d[32], p[32], low[32], high[32], difference[128];
    ats_compare_number(x->difference, d);
    if (c->exact || x->n < 2)
        snprintf(difference, sizeof difference, "%s", d);
    else
        snprintf(difference, sizeof difference, "%s [%s, %s]",
                 claims || row->gate != NULL ? d : "~", ats_compare_bound(x->interval.low, low),
                 ats_compare_bound(x->interval.high, high));
    add_cell(out, name, NAME);
    ats_text_add(out, " %8s %8s %27s %5s %3lld\n", ats_compare_number(x->base, a),
                 ats_compare_number(x->candidate, b), difference, p_text(row->p_adjusted, p),
                 (long long)x->n);
}

/* A gate: verdict and whole name, then its numbers. */
static void add_gate(ats_text *out, const ats_compare_row *row, const ats_comparison *c,
                     ats_compare_style style)
{
    const ats_compare_gate *gate = row->gate;
    const char *claim = ats_claim_name(row->claim), *of = gate->span ? gate->span : gate->part;
    char metric[256];
    ats_text_add(out, "%s%-13s%s", style(colour_of(claim)), claim, style("off"));
    add_cell(out, row->name, columns(row->name) < WIDTH - 13 ? columns(row->name) : WIDTH - 13);
    snprintf(metric, sizeof metric, "  %.100s%s%.100s%s", gate->metric, of != NULL ? "[" : "",
             of != NULL ? of : "", of != NULL ? "]" : "");
    ats_text_add(out, "\n");
    add_row(out, metric, row, c);
}

static void add_rows(ats_text *out, const ats_comparison *c, ats_compare_style style)
{
    if (c->n_rows == 0) return;
    ats_text_add(out, "%-24s %8s %8s %27s %5s %3s\n", c->n_gates > 0 ? "gates" : "", "base",
                 "cand.", "difference", "p", "n");
    for (int64_t i = 0; i < c->n_gates; i++) add_gate(out, &c->rows[i], c, style);
    if (c->n_rows > c->n_gates)
        ats_text_add(out, "mean log mass shift of %s, nats (base route: log mass)\n", c->target);
    for (int64_t i = c->n_gates; i < c->n_rows; i++) add_row(out, c->rows[i].name, &c->rows[i], c);
}

static void add_worst(ats_text *out, const ats_comparison *c)
{
    if (c->n_worst == 0) return;
    ats_text_add(out, "worst heads (q: Benjamini-Hochberg over %lld cells)\n",
                 (long long)(c->n_what * c->n_layers * c->n_heads));
    for (int64_t i = 0; i < c->n_worst; i++) {
        const ats_compare_cell *w = &c->worst[i];
        char a[32], b[32], d[32], q[32], place[64];
        const bool claimed = w->q <= c->alpha;
        snprintf(place, sizeof place, "layer %lld head %lld", (long long)c->layers[w->l],
                 (long long)c->heads[w->h]);
        add_cell(out, place, 17);
        ats_text_add(out, " ");
        add_cell(out, c->what[w->what], 20);
        ats_text_add(out, " %9s %9s %9s%s q %s\n", ats_compare_number(w->numbers.base, a),
                     ats_compare_number(w->numbers.candidate, b),
                     ats_compare_number(w->numbers.difference, d), claimed || c->exact ? "" : " ~",
                     p_text(w->q, q));
        if (w->explain != NULL) ats_text_add(out, "  %s\n", w->explain);
    }
}

/* Of the results' own curves where there are some, else of the mean curve. */
static void half_text(const ats_compare_curve *curve, int side, char out[64])
{
    const ats_dose_median *median = &curve->half[side];
    if (curve->measured) {
        if (isnan(median->median))
            snprintf(out, 64, "-");
        else
            snprintf(out, 64, "%s%.3g",
                     median->censored == ATS_CENSORED_RIGHT  ? "> "
                     : median->censored == ATS_CENSORED_LEFT ? "<= "
                                                             : "",
                     median->median);
        return;
    }
    const ats_compare_numbers *first = &curve->points[0].numbers;
    const double half = side ? curve->half_candidate : curve->half_base;
    const double start = side ? first->candidate : first->base;
    if (!isnan(half))
        snprintf(out, 64, "%.3g", half);
    else if (start <= log(0.5))
        snprintf(out, 64, "< %.3g", curve->points[0].dose);
    else
        snprintf(out, 64, "> %.3g", curve->points[curve->n - 1].dose);
}

/* "half-dose 4.2 -> 3.9 (of 96 pairs 70 lower, 10 higher, 16 hidden); strength +1.2 ~" */
static void add_doses(const ats_compare_curve *curve, const ats_comparison *c, char *out,
                      size_t size)
{
    char a[64], b[64], d[32];
    half_text(curve, 0, a);
    half_text(curve, 1, b);
    int used = snprintf(out, size, "; half-dose %s -> %s", a, b);
    if (!curve->measured || (size_t)used >= size) return;
    const int64_t n = curve->n_lower + curve->n_equal + curve->n_higher + curve->n_hidden;
    if (!isnan(curve->half[0].median) || !isnan(curve->half[1].median))
        used += snprintf(out + used, size - (size_t)used,
                         " (of %lld pairs %lld lower, %lld higher, %lld hidden by the grid)",
                         (long long)n, (long long)curve->n_lower, (long long)curve->n_higher,
                         (long long)curve->n_hidden);
    if (isnan(curve->strength.difference) || (size_t)used >= size) return;
    const bool claims = c->exact || ats_compare_claims(&curve->strength, c->alpha);
    snprintf(out + used, size - (size_t)used, "; strength %s%s",
             ats_compare_number(curve->strength.difference, d), claims ? "" : " ~");
}

static void add_curves(ats_text *out, const ats_comparison *c)
{
    if (c->n_curves == 0) return;
    add_wrapped(out,
                "dose curves: difference of the mean log mass shift by dose; half-dose: median "
                "over samples, curves and heads, those beyond the grid counted as such; "
                "difference of the competition strength, nats",
                0);
    for (int64_t i = 0; i < c->n_curves; i++) {
        const ats_compare_curve *curve = &c->curves[i];
        char line[1024];
        int used = 0;
        for (int64_t k = 0; k < curve->n && used < 700; k++) {
            const ats_compare_numbers *x = &curve->points[k].numbers;
            const bool claims = c->exact || ats_compare_claims(x, c->alpha);
            char d[32];
            used += snprintf(line + used, sizeof line - (size_t)used, "%s%g: %s%s",
                             k > 0 ? ", " : "", curve->points[k].dose,
                             ats_compare_number(x->difference, d), claims ? "" : " ~");
        }
        add_doses(curve, c, line + used, sizeof line - (size_t)used);
        ats_text_add(out, "  %s\n", curve->perturbation);
        add_wrapped(out, line, 4);
    }
}

static void add_findings(ats_text *out, const ats_comparison *c)
{
    static const char *const kinds[] = {"missing", "extra", "undefined"};
    if (c->n_findings == 0) return;
    ats_text_add(out, "not paired: %lld missing, %lld extra, %lld undefined; %lld not allowed\n",
                 (long long)c->of_kind[0], (long long)c->of_kind[1], (long long)c->of_kind[2],
                 (long long)c->n_refused);
    for (int64_t i = 0; i < c->n_stored && i < SHOWN_FINDINGS; i++) {
        const ats_compare_finding *f = &c->findings[i];
        char line[1024];
        snprintf(line, sizeof line, "%s%s %.200s%s%.300s: %.400s", kinds[f->kind],
                 f->allowed ? " (allowed)" : "", f->sample, f->variant != NULL ? ":" : "",
                 f->variant != NULL ? f->variant : "", f->text);
        add_wrapped(out, line, 2);
    }
    if (c->n_findings > SHOWN_FINDINGS)
        ats_text_add(out, "  and %lld more; --format json lists them\n",
                     (long long)(c->n_findings - SHOWN_FINDINGS));
}

static void add_differences(ats_text *out, const ats_comparison *c)
{
    for (int64_t i = 0; i < c->n_differences && i < ATS_COMPARE_WORST; i++) {
        const ats_compare_difference *d = &c->differences[i];
        char line[512];
        snprintf(line, sizeof line, "%s: %lld numbers differ, most at %s: %.9g against %.9g",
                 d->variable, (long long)d->count, d->place, d->base, d->candidate);
        add_wrapped(out, line, 2);
    }
}

ats_code ats_compare_text(ats_arena *arena, const ats_comparison *c, ats_compare_style style,
                          const char **out, ats_err *err)
{
    ats_text text = {.arena = arena, .err = err};
    add_head(&text, c);
    add_method(&text, c);
    ats_text_add(&text, "\n");
    add_rows(&text, c, style);
    add_worst(&text, c);
    add_curves(&text, c);
    add_differences(&text, c);
    add_findings(&text, c);
    if (c->n_undefined_both > 0)
        ats_text_add(&text, "%lld cells are undefined on both sides: equal, left out\n",
                     (long long)c->n_undefined_both);
    if (c->n_absolute > 0)
        ats_text_add(&text, "%lld gate%s min or max alone; `run` judges %s\n",
                     (long long)c->n_absolute, c->n_absolute == 1 ? " has" : "s have",
                     c->n_absolute == 1 ? "it" : "them");
    ats_text_add(&text, "\n");
    for (int64_t g = 0; g < c->n_gates; g++)
        if (c->rows[g].claim == ATS_CLAIM_REGRESSED || c->rows[g].claim == ATS_CLAIM_INCONCLUSIVE)
            add_wrapped(&text, c->rows[g].sentence, 0);
    ats_text_add(&text, "verdict: %s%s%s: %s\n", style(colour_of(c->verdict)), c->verdict,
                 style("off"), c->sentence);
    return ats_text_done(&text, out);
}
