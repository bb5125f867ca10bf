#include <math.h>
#include <string.h>

#include "engine/verify_unit.h"

static ats_verify_check *find(ats_verify_report *report, const char *name)
{
    for (int64_t i = 0; i < report->n_checks; i++)
        if (strcmp(report->checks[i].name, name) == 0) return &report->checks[i];
    return NULL;
}

static ats_code find_or_make(ats_verify_unit *unit, const char *name, ats_verify_check **out,
                             ats_err *err)
{
    ats_verify_report *report = unit->report;
    ats_code rc = ATS_OK;
    ats_verify_check *check = find(report, name);
    if (check == NULL) {
        ATS_ASSERT(report->n_checks < ATS_VERIFY_CHECKS);
        check = &report->checks[report->n_checks];
        *check = (ats_verify_check){.statement = "", .where = ""};
        ATS_TRY(ats_arena_strdup(&report->arena, name, &check->name, err));
        report->n_checks++;
    }
    *out = check;
out:
    return rc;
}

/* Residual in units of its bound; an undefined residual is the worst of all. */
static double badness(double residual, double bound)
{
    if (isnan(residual)) return HUGE_VAL;
    return residual == 0 ? 0 : residual / bound;
}

void ats_verify_compare(ats_law *law, int64_t row, double residual, double bound)
{
    if (law->rows == 0 || badness(residual, bound) > badness(law->residual, law->bound)) {
        law->residual = residual;
        law->bound = bound;
        law->worst_row = row;
    }
    law->rows++;
    law->broken += !(residual <= bound);
}

static ats_code describe(ats_verify_unit *unit, int64_t row, const char **out, ats_err *err)
{
    const int64_t n = unit->pick.n_probes;
    return ats_arena_printf(&unit->report->arena, out, err, "%s layer %lld head %lld probe %lld",
                            unit->sample->id, (long long)unit->layer->index,
                            (long long)unit->pick.heads[row / n],
                            (long long)unit->pick.probes[row % n]);
}

ats_code ats_verify_add(ats_verify_unit *unit, const char *name, const char *statement,
                        const ats_law *law, ats_err *err)
{
    ats_verify_check *check = NULL;
    ats_code rc = find_or_make(unit, name, &check, err);
    if (rc != ATS_OK || law->rows == 0) goto out;
    if (check->statement[0] == '\0')
        ATS_TRY(ats_arena_strdup(&unit->report->arena, statement, &check->statement, err));
    if (check->rows == 0 ||
        badness(law->residual, law->bound) > badness(check->residual, check->bound)) {
        check->residual = law->residual;
        check->bound = law->bound;
        if (law->worst_row >= 0) ATS_TRY(describe(unit, law->worst_row, &check->where, err));
    }
    check->rows += law->rows;
    check->broken += law->broken;
out:
    return rc;
}

ats_code ats_verify_not_applicable(ats_verify_unit *unit, const char *label, const char *reason,
                                   ats_err *err)
{
    ats_verify_report *report = unit->report;
    ats_verify_check *check = NULL;
    ats_code rc = find_or_make(unit, label, &check, err);
    if (rc != ATS_OK || check->reason != NULL) goto out;
    ATS_TRY(ats_arena_printf(&report->arena, &check->reason, err, "%s, layer %lld: %s",
                             unit->sample->id, (long long)unit->layer->index, reason));
out:
    return rc;
}

/* A label that stands for checks made at other places is not listed as inapplicable. */
static bool made_elsewhere(const ats_verify_report *report, const char *label)
{
    const size_t length = strlen(label);
    for (int64_t i = 0; i < report->n_checks; i++) {
        const ats_verify_check *check = &report->checks[i];
        if (check->rows > 0 && strncmp(check->name, label, length) == 0 &&
            check->name[length] == '.')
            return true;
    }
    return false;
}

void ats_verify_close(ats_verify_report *report)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < report->n_checks; i++) {
        ats_verify_check check = report->checks[i];
        if (check.rows == 0 && made_elsewhere(report, check.name)) continue;
        if (check.rows == 0) {
            check.status = ATS_VERIFY_NOT_APPLICABLE;
            if (check.reason == NULL) check.reason = "nothing to compare in this capture";
            report->n_not_applicable++;
        } else if (check.broken > 0) {
            check.status = ATS_VERIFY_FAIL;
            report->n_failed++;
        } else {
            check.status = ATS_VERIFY_OK;
            report->n_ok++;
        }
        report->checks[kept++] = check;
    }
    report->n_checks = kept;
}
