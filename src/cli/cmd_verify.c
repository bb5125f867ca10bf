#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "engine/verify.h"

enum { LAW_SAMPLES = 2 };

static const ats_option options[] = {
    {"samples", 0, ATS_OPT_VALUE, "N", "Look at the first N samples (all).", false},
    {"layers", 0, ATS_OPT_VALUE, "N", "Look at the first N layers (all).", false},
    {"law-samples", 0, ATS_OPT_VALUE, "N",
     "Run the laws on the first N of those samples (2; 0: all).", false},
    {"target", 0, ATS_OPT_VALUE, "SPAN",
     "Span the edits aim at, by name or role (gold, or the first).", false},
    {"backend", 0, ATS_OPT_VALUE, "NAME", "Backend under test (auto).", false},
    {"json", 0, ATS_OPT_FLAG, NULL, "Print the table as JSON.", false},
};

static const char *status_word(ats_verify_status status)
{
    static const char *const words[] = {"ok", "FAIL", "not applicable"};
    return words[status];
}

static void print_check(const ats_verify_check *check)
{
    const bool failed = check->status == ATS_VERIFY_FAIL;
    printf("%-27s %8.1e %8.1e  %s%-4s%s  %s\n", check->name, check->residual, check->bound,
           ats_style(failed ? "red" : "green"), status_word(check->status), ats_style("off"),
           check->where);
    if (failed)
        printf("    broken in %lld of %lld comparisons: %s\n", (long long)check->broken,
               (long long)check->rows, check->statement);
}

/* A paragraph broken at blanks before column 78, every line indented. */
static void print_wrapped(const char *text)
{
    const size_t width = 74;
    while (*text != '\0') {
        size_t length = strlen(text);
        if (length > width) {
            length = width;
            while (length > 0 && text[length] != ' ') length--;
            if (length == 0) length = width;
        }
        printf("    %.*s\n", (int)length, text);
        text += length;
        while (*text == ' ') text++;
    }
}

static void print_text(const ats_capture *capture, const ats_verify_report *report)
{
    printf("%s: %s, %s\n", capture->path, capture->model_id != NULL ? capture->model_id : "",
           capture->checkpoint != NULL ? capture->checkpoint : "");
    printf("%lld samples, %lld layers; laws on %lld of the samples; backend %s%s%s%s\n\n",
           (long long)report->n_samples, (long long)report->n_layers,
           (long long)report->law_samples, report->backend,
           report->detail != NULL && report->detail[0] ? " (" : "",
           report->detail != NULL ? report->detail : "",
           report->detail != NULL && report->detail[0] ? ")" : "");
    printf("%-27s %8s %8s  %-4s  %s\n", "check", "residual", "bound", "", "worst at");
    for (int64_t i = 0; i < report->n_checks; i++)
        if (report->checks[i].status != ATS_VERIFY_NOT_APPLICABLE) print_check(&report->checks[i]);
    if (report->n_not_applicable > 0) printf("\nnot applicable here:\n");
    for (int64_t i = 0; i < report->n_checks; i++) {
        if (report->checks[i].status != ATS_VERIFY_NOT_APPLICABLE) continue;
        printf("  %s\n", report->checks[i].name);
        print_wrapped(report->checks[i].reason);
    }
    printf("\n%lld checks hold, %s%lld fail%s", (long long)report->n_ok,
           report->n_failed > 0 ? ats_style("red") : "", (long long)report->n_failed,
           report->n_failed > 0 ? ats_style("off") : "");
    if (report->n_not_applicable > 0)
        printf(", %lld not applicable", (long long)report->n_not_applicable);
    printf(".\n");
}

static void print_failures(const ats_verify_report *report)
{
    for (int64_t i = 0; i < report->n_checks; i++)
        if (report->checks[i].status == ATS_VERIFY_FAIL) print_check(&report->checks[i]);
}

/* A proof of today says nothing about the bytes of tomorrow where no checksum guards them. */
static ats_code warn_without_checksums(const ats_capture *capture, ats_err *err)
{
    int64_t tensors = 0, with = 0;
    const ats_code rc = ats_capture_checksums(capture, &tensors, &with, err);
    if (rc == ATS_OK && with < tensors)
        ats_warn("%s: %lld of %lld tensors have no checksum, so that a damaged byte passes for "
                 "another number; write them with fletcher32 or this program's zstd filter "
                 "(docs/capture-format.md)",
                 capture->path, (long long)(tensors - with), (long long)tensors);
    return rc;
}

/* JSON has no NaN: an undefined number is null. */
static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *check_json(const ats_verify_check *check)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:s, s:s?}", "check", check->name,
                     "statement", check->statement, "status", status_word(check->status),
                     "residual", check->rows > 0 ? number(check->residual) : json_null(), "bound",
                     check->rows > 0 ? number(check->bound) : json_null(), "comparisons",
                     (json_int_t)check->rows, "broken", (json_int_t)check->broken, "worst_at",
                     check->where, "reason", check->reason);
}

static ats_code print_json(const ats_capture *capture, const ats_verify_report *report,
                           ats_err *err)
{
    json_t *checks = json_array();
    for (int64_t i = 0; i < report->n_checks; i++)
        if (json_array_append_new(checks, check_json(&report->checks[i])) != 0)
            return ats_fail(err, ATS_E_MEMORY, "out of memory for the JSON table");
    json_t *root = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:s, s:b, s:I, s:I, s:I, s:o}", "capture", capture->path, "hash",
        capture->hash, "samples", (json_int_t)report->n_samples, "layers",
        (json_int_t)report->n_layers, "law_samples", (json_int_t)report->law_samples, "backend",
        report->backend, "holds", report->n_failed == 0, "ok", (json_int_t)report->n_ok, "failed",
        (json_int_t)report->n_failed, "not_applicable", (json_int_t)report->n_not_applicable,
        "checks", checks);
    const int status = root != NULL ? json_dumpf(root, stdout, JSON_INDENT(1)) : -1;
    json_decref(root);
    if (status != 0) return ats_fail(err, ATS_E_IO, "the JSON table could not be printed");
    printf("\n");
    return ATS_OK;
}

static ats_code choose(const ats_args *args, ats_verify_options *out, ats_err *err)
{
    const int64_t many = (int64_t)1 << 40;
    ats_code rc;
    ATS_TRY(ats_args_int(args, "samples", 0, 1, many, &out->n_samples, err));
    ATS_TRY(ats_args_int(args, "layers", 0, 1, many, &out->n_layers, err));
    ATS_TRY(ats_args_int(args, "law-samples", LAW_SAMPLES, 0, many, &out->law_samples, err));
    out->backend = ats_args_value(args, "backend");
    out->target = ats_args_value(args, "target");
out:
    return rc;
}

static ats_code run(const ats_args *args, ats_err *err)
{
    ats_verify_options verify = {.backend = NULL};
    ats_verify_report report = {.n_checks = 0};
    ats_capture *capture = NULL;
    ats_code rc;
    ATS_TRY(choose(args, &verify, err));
    ATS_TRY(ats_capture_open(args->operands[0], &capture, err));
    ATS_TRY(warn_without_checksums(capture, err));
    ATS_TRY(ats_verify_run(capture, &verify, &report, err));
    if (ats_args_flag(args, "json"))
        ATS_TRY(print_json(capture, &report, err));
    else if (ats_args_flag(args, "quiet"))
        print_failures(&report);
    else
        print_text(capture, &report);
    if (report.n_failed > 0) rc = ats_fail(err, ATS_E_GATE, "%s", "");
out:
    ats_verify_fini(&report);
    if (capture != NULL) ats_capture_close(capture);
    return rc;
}

const ats_command ats_cmd_verify = {
    .name = "verify",
    .operands = "CAPTURE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "prove a capture: parity with the model, and every exact law on it",
    .examples = "attnstress verify capture.h5\n"
                "attnstress verify capture.h5 --law-samples 0 --json > verify.json\n"
                "attnstress verify big.h5 --samples 1 --layers 2",
    .details = "Parity compares attention over the stored words with the output and\n"
               "log-sum-exp that the model itself gave, at every sample, layer, head and\n"
               "probe. The laws are identities that hold for any attention: rows inserted\n"
               "in overlay scale every old weight by one factor, a masked window gives its\n"
               "mass to the rest in proportion, swapped values change no weight, and so\n"
               "on; they run on edits of this very capture. Agreement compares the backend\n"
               "with the double-precision reference. A residual is the worst seen, beside\n"
               "the bound it must keep to there. Exit status 1 when a check fails.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
