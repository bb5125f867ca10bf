/* JUnit XML as CI servers read it: <testsuites>, one <testsuite>, a <testcase> per gate and one
 * for what could not be paired. Class names and names together are unique. */
#include <string.h>

#include "report/compare_private.h"
#include "report/html.h"

enum { NAME_ROOM = 200 };

/* A name of at most NAME_ROOM bytes, cut between characters. */
static void add_name(ats_text *t, const char *name)
{
    char cut[NAME_ROOM + 4];
    size_t length = strlen(name);
    if (length > NAME_ROOM) {
        length = NAME_ROOM;
        while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80) length--;
        memcpy(cut, name, length);
        memcpy(cut + length, "...", 4);
        name = cut;
    }
    ats_html_escape(t, name);
}

typedef struct counts {
    int64_t tests, failures, skipped;
} counts;

/* What CI shows as failed: everything that makes the exit status other than 0. */
static bool gate_fails(const ats_compare_row *row)
{
    return row->claim == ATS_CLAIM_REGRESSED || row->claim == ATS_CLAIM_INCONCLUSIVE;
}

static counts count(const ats_comparison *c)
{
    counts n = {.tests = c->n_gates + 1 + c->exact + (c->n_gates == 0 && !c->exact)};
    for (int64_t g = 0; g < c->n_gates; g++) n.failures += gate_fails(&c->rows[g]);
    n.failures += c->n_refused > 0;
    n.failures += c->exact && c->n_differences > 0;
    n.failures += c->n_gates == 0 && !c->exact;
    return n;
}

/* message NULL: passed. */
static void add_case(ats_text *t, const ats_comparison *c, const char *kind, int64_t number,
                     const char *name, const char *type, const char *message)
{
    ats_text_add(t, "    <testcase classname=\"");
    ats_html_escape(t, c->suite);
    ats_text_add(t, ".%s", kind);
    if (number >= 0) ats_text_add(t, ".%lld", (long long)number + 1);
    ats_text_add(t, "\" name=\"");
    add_name(t, name);
    ats_text_add(t, "\" time=\"0\"");
    if (message == NULL) {
        ats_text_add(t, "/>\n");
        return;
    }
    ats_text_add(t, ">\n      <failure type=\"%s\" message=\"", type);
    ats_html_escape(t, message);
    ats_text_add(t, "\">");
    ats_html_escape(t, message);
    ats_text_add(t, "</failure>\n    </testcase>\n");
}

/* The findings that were not allowed, in one message. */
static ats_code pairing_message(ats_arena *arena, const ats_comparison *c, const char **out,
                                ats_err *err)
{
    enum { SHOWN = 20 };
    ats_text text = {.arena = arena, .err = err};
    int64_t shown = 0;
    if (c->n_refused == 0) {
        *out = NULL;
        return ATS_OK;
    }
    ats_text_add(&text, "%lld cases have no partner:", (long long)c->n_refused);
    for (int64_t i = 0; i < c->n_stored && shown < SHOWN; i++) {
        const ats_compare_finding *f = &c->findings[i];
        if (f->allowed) continue;
        ats_text_add(&text, " %s%s%s: %s;", f->sample, f->variant != NULL ? ":" : "",
                     f->variant != NULL ? f->variant : "", f->text);
        shown++;
    }
    if (c->n_refused > shown)
        ats_text_add(&text, " and %lld more", (long long)(c->n_refused - shown));
    return ats_text_done(&text, out);
}

ats_code ats_compare_junit(ats_arena *arena, const ats_comparison *c, const char **out,
                           ats_err *err)
{
    ats_text text = {.arena = arena, .err = err}, *t = &text;
    const counts n = count(c);
    const char *pairing = NULL;
    ats_code rc = pairing_message(arena, c, &pairing, err);
    if (rc != ATS_OK) return rc;
    ats_text_add(t,
                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attnstress\" "
                 "tests=\"%lld\" failures=\"%lld\" errors=\"0\" time=\"0\">\n",
                 (long long)n.tests, (long long)n.failures);
    ats_text_add(t, "  <testsuite name=\"");
    ats_html_escape(t, c->suite);
    ats_text_add(t,
                 "\" tests=\"%lld\" failures=\"%lld\" errors=\"0\" skipped=\"0\" time=\"0\">\n"
                 "    <properties>\n",
                 (long long)n.tests, (long long)n.failures);
    const struct {
        const char *name, *value;
    } properties[] = {{"verdict", c->verdict},
                      {"baseline", c->base},
                      {"baseline_hash", c->base_hash},
                      {"candidate", c->candidate},
                      {"candidate_hash", c->candidate_hash},
                      {"suite_hash", c->suite_hash}};
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        ats_text_add(t, "      <property name=\"%s\" value=\"", properties[i].name);
        ats_html_escape(t, properties[i].value);
        ats_text_add(t, "\"/>\n");
    }
    ats_text_add(t, "    </properties>\n");
    for (int64_t g = 0; g < c->n_gates; g++) {
        const ats_compare_row *row = &c->rows[g];
        add_case(t, c, "gate", g, row->name, ats_claim_name(row->claim),
                 gate_fails(row) ? row->sentence : NULL);
    }
    if (c->exact)
        add_case(t, c, "exact", -1, "the same captures give the same numbers", "differs",
                 c->n_differences > 0 ? c->sentence : NULL);
    else if (c->n_gates == 0)
        add_case(t, c, "gate", -1, "a gate judges the comparison", "inconclusive", c->sentence);
    add_case(t, c, "pairing", -1, "every case has a partner", "unpaired", pairing);
    ats_text_add(t, "  </testsuite>\n</testsuites>\n");
    return ats_text_done(t, out);
}

/* Message of a workflow command: %, CR and LF are escaped; in a property also : and comma. */
static void add_command(ats_text *t, const char *value, bool property)
{
    for (const char *p = value; *p != '\0'; p++) {
        if (*p == '%' || *p == '\r' || *p == '\n' || (property && (*p == ':' || *p == ',')))
            ats_text_add(t, "%%%02X", (unsigned)(unsigned char)*p);
        else
            ats_text_add(t, "%c", *p);
    }
}

ats_code ats_compare_github(ats_arena *arena, const ats_comparison *c, const char **out,
                            ats_err *err)
{
    ats_text text = {.arena = arena, .err = err}, *t = &text;
    const char *pairing = NULL;
    ats_code rc = pairing_message(arena, c, &pairing, err);
    if (rc != ATS_OK) return rc;
    for (int64_t g = 0; g < c->n_gates; g++) {
        const ats_compare_row *row = &c->rows[g];
        if (!gate_fails(row)) continue;
        ats_text_add(t, row->claim == ATS_CLAIM_REGRESSED ? "::error " : "::warning ");
        if (row->gate->file != NULL) {
            ats_text_add(t, "file=");
            add_command(t, row->gate->file, true);
            ats_text_add(t, ",line=%lld,", (long long)row->gate->line);
        }
        ats_text_add(t, "title=attnstress %s::", ats_claim_name(row->claim));
        add_command(t, row->sentence, false);
        ats_text_add(t, "\n");
    }
    if (pairing != NULL) {
        ats_text_add(t, "::error title=attnstress unpaired::");
        add_command(t, pairing, false);
        ats_text_add(t, "\n");
    }
    if (c->exact && c->n_differences > 0)
        ats_text_add(t, "::error title=attnstress differs::%s\n", c->sentence);
    return ats_text_done(t, out);
}
