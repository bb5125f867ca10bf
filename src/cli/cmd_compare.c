#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/output.h"
#include "engine/compare.h"

static const ats_option options[] = {
    {"gates", 0, ATS_OPT_VALUE, "SUITE", "suite whose gates judge; default: the one in BASE",
     false},
    {"format", 0, ATS_OPT_VALUE, "NAME", "text, json, csv or markdown", false},
    {"json", 0, ATS_OPT_FLAG, NULL, "--format json", false},
    {"junit", 0, ATS_OPT_VALUE, "FILE", "also write JUnit XML", false},
    {"allow-missing", 0, ATS_OPT_LIST, "PATTERN", "samples or variants the candidate may lack",
     false},
    {"allow-extra", 0, ATS_OPT_LIST, "PATTERN", "samples or variants the baseline may lack", false},
    {"allow-undefined", 0, ATS_OPT_LIST, "PATTERN", "cases that may be undefined on one side",
     false},
    {"alpha", 0, ATS_OPT_VALUE, "A", "error rate of intervals and tests (0.05)", false},
    {"resamples", 0, ATS_OPT_VALUE, "N", "bootstrap resamples (10000)", false},
    {"seed", 0, ATS_OPT_VALUE, "N", "seed of the resamples (the suite's)", false},
    {"noise-floor", 0, ATS_OPT_VALUE, "X", "exact mode: largest difference that counts as none",
     false},
};

typedef ats_code (*form)(ats_arena *arena, const ats_comparison *comparison, const char **out,
                         ats_err *err);

static ats_code text_form(ats_arena *arena, const ats_comparison *comparison, const char **out,
                          ats_err *err)
{
    return ats_compare_text(arena, comparison, ats_style, out, err);
}

static ats_code choose_form(const ats_args *args, form *out, ats_err *err)
{
    static const struct {
        const char *name;
        form write;
    } forms[] = {{"text", text_form},
                 {"json", ats_compare_json},
                 {"csv", ats_compare_csv},
                 {"markdown", ats_compare_markdown}};
    const char *name = ats_args_value(args, "format");
    if (ats_args_flag(args, "json")) {
        if (name != NULL && strcmp(name, "json") != 0)
            return ats_fail(err, ATS_E_USAGE, "--json and --format %s contradict each other", name);
        name = "json";
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (name == NULL || strcmp(forms[i].name, name) == 0) {
            *out = forms[i].write;
            return ATS_OK;
        }
    return ats_fail(err, ATS_E_USAGE, "--format %s: must be text, json, csv or markdown", name);
}

/* GitHub refuses a step summary above 1 MiB, what other steps wrote included. */
static ats_code append_summary(const char *path, const char *text, ats_err *err)
{
    enum { LIMIT = 1 << 20, SPARE = 1024 };
    FILE *stream = fopen(path, "a");
    if (stream == NULL)
        return ats_fail(err, ATS_E_IO, "%s (GITHUB_STEP_SUMMARY) cannot be written: %s", path,
                        strerror(errno));
    fseek(stream, 0, SEEK_END);
    const bool fits = ftell(stream) + (long)strlen(text) + SPARE <= LIMIT;
    if (!fits) ats_warn("the step summary would pass 1 MiB; the comparison is left out of it");
    const bool written = !fits || fputs(text, stream) >= 0;
    if (fclose(stream) == 0 && written) return ATS_OK;
    return ats_fail(err, ATS_E_IO, "%s (GITHUB_STEP_SUMMARY) cannot be written: %s", path,
                    strerror(errno));
}

/* Commands of a workflow are read from stderr as well, where they spoil no data. */
static ats_code tell_github(ats_arena *arena, const ats_comparison *comparison, ats_err *err)
{
    const char *actions = getenv("GITHUB_ACTIONS"), *summary = getenv("GITHUB_STEP_SUMMARY");
    const char *text = NULL;
    ats_code rc = ATS_OK;
    if (actions != NULL && strcmp(actions, "true") == 0) {
        ATS_TRY(ats_compare_github(arena, comparison, &text, err));
        fputs(text, stderr);
    }
    if (summary != NULL && summary[0] != '\0') {
        ATS_TRY(ats_compare_markdown(arena, comparison, &text, err));
        rc = append_summary(summary, text, err);
    }
out:
    return rc;
}

static ats_code read_options(const ats_args *args, ats_compare_options *out, ats_err *err)
{
    int64_t seed = 0;
    ats_code rc = ATS_OK;
    *out = (ats_compare_options){.base = args->operands[0], .candidate = args->operands[1]};
    ats_args_allow(args, out->allow, out->n_allow);
    ATS_TRY(ats_args_real(args, "alpha", 0.05, 1e-6, 0.5, &out->alpha, err));
    ATS_TRY(ats_args_int(args, "resamples", 10000, 100, 10000000, &out->resamples, err));
    ATS_TRY(ats_args_int(args, "seed", 0, 1, INT64_MAX, &seed, err));
    ATS_TRY(ats_args_real(args, "noise-floor", -1, 0, 1e6, &out->noise_floor, err));
    out->seed = (uint64_t)seed;
out:
    return rc;
}

static ats_code run_compare(const ats_args *args, ats_err *err)
{
    ats_compared compared = {.suite = NULL};
    ats_compare_options asked;
    form write = NULL;
    const char *text = NULL, *junit = ats_args_value(args, "junit");
    ats_code rc;
    const char *const inputs[] = {args->operands[0], args->operands[1],
                                  ats_args_value(args, "gates")};
    ATS_TRY(choose_form(args, &write, err));
    ATS_TRY(read_options(args, &asked, err));
    if (junit != NULL) ATS_TRY(ats_output_check("--junit", junit, 3, inputs, err));
    ATS_TRY(ats_compare_run(ats_args_value(args, "gates"), &asked, &compared, err));
    ats_comparison *c = compared.comparison;
    if (ats_args_flag(args, "quiet")) {
        if (c->code != ATS_OK) fprintf(stderr, "verdict: %s: %s\n", c->verdict, c->sentence);
    } else {
        ATS_TRY(write(&c->arena, c, &text, err));
        fputs(text, stdout);
    }
    if (junit != NULL) {
        ATS_TRY(ats_compare_junit(&c->arena, c, &text, err));
        ATS_TRY(ats_output_write(junit, text, err));
    }
    ATS_TRY(tell_github(&c->arena, c, err));
    rc = c->code;
out:
    ats_compared_close(&compared);
    return rc;
}

const ats_command ats_cmd_compare = {
    .name = "compare",
    .operands = "BASE CAND",
    .min_operands = 2,
    .max_operands = 2,
    .summary = "compare two results, pair by pair, and judge the gates",
    .examples = "attnstress compare yesterday.h5 tonight.h5\n"
                "attnstress compare base.h5 cand.h5 --gates suites/nightly.yaml --junit gates.xml\n"
                "attnstress compare base.h5 cand.h5 --format markdown\n"
                "attnstress compare base.h5 cand.h5 --allow-missing 's03*' --json",
    .details = "Both results must come from one suite on the same prompts (tokens, spans and\n"
               "probes), else exit status 3 with a list. Gates with max_drop, max_rise or\n"
               "equivalence are judged on one mean difference per cluster (document): regressed,\n"
               "improved, unchanged or inconclusive. Exit status 0 when every gate is\n"
               "unchanged or improved, 1 when one regressed or a case has no partner that no\n"
               "--allow-... names, 2 when something is inconclusive or nothing was judged.\n"
               "Results of the same captures are compared number by number instead.\n"
               "In GitHub Actions, annotations go to stderr and a table to the step summary.\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_compare,
};
