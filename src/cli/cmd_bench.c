#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "bench/bench.h"
#include "bench/gpu.h"
#include "cli/session.h"
#include "engine/bench_files.h"
#include "engine/version.h"

static const ats_option options[] = {
    {"json", 0, ATS_OPT_FLAG, NULL, "As JSON.", false},
    {"quick", 0, ATS_OPT_FLAG, NULL, "Smaller problems and shorter measurements.", false},
    {"clock", 0, ATS_OPT_VALUE, "WHICH", "wall (elapsed time) or cpu (processor time a thread).",
     false},
    {"only", 0, ATS_OPT_LIST, "WHAT", "pass, probes, sharing, files, scaling or gpu.", false},
    {"scaling", 0, ATS_OPT_FLAG, NULL, "Also growth with keys, variants, layers and heads.", false},
};

/* "model name" of /proc/cpuinfo, or "unknown". */
static void read_cpu_name(char *out, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *value = strstr(line, ": ");
        if (value == NULL || strncmp(line, "model name", 10) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s", value + 2);
        break;
    }
    if (file != NULL) fclose(file);
}

typedef struct setting {
    char cpu[200];
    const char *level;
} setting;

static ats_code describe(setting *out, ats_err *err)
{
    const ats_backend *cpu = NULL;
    ats_code rc;
    ATS_TRY(ats_backend_find("cpu", &cpu, err));
    ATS_TRY(cpu->probe(err));
    out->level = cpu->detail();
    read_cpu_name(out->cpu, sizeof out->cpu);
out:
    return rc;
}

static void print_row(const ats_bench_row *row)
{
    const char *verdict = ats_bench_verdict(row);
    char bar[64] = "";
    if (!isnan(row->must))
        snprintf(bar, sizeof bar, "%s %g / %g %s", row->at_most ? "at most" : "at least", row->must,
                 row->goal, row->unit);
    const char *style = strcmp(verdict, "goal") == 0     ? "green"
                        : strcmp(verdict, "must") == 0   ? "yellow"
                        : strcmp(verdict, "missed") == 0 ? "red"
                                                         : "off";
    char value[32] = "-";
    if (!isnan(row->value)) snprintf(value, sizeof value, "%.4g", row->value);
    printf("%-60s %9s %-8s %s%-7s%s %s\n", row->what, value, row->unit, ats_style(style), verdict,
           ats_style("off"), bar);
    if (row->note[0] != '\0') printf("    %s%s%s\n", ats_style("dim"), row->note, ats_style("off"));
}

static void print_text(const ats_bench *bench, const setting *s)
{
    printf("%s, instruction set %s, %d thread%s, attnstress %s (git %s)\n", s->cpu, s->level,
           bench->threads, bench->threads > 1 ? "s" : "", ats_version(), ats_git_hash());
    printf("%s, best of repeated runs; bars are must / goal\n",
           bench->cpu_time ? "processor time" : "elapsed time");
    const char *group = "";
    for (int64_t i = 0; i < bench->n_rows; i++) {
        if (strcmp(group, bench->rows[i].group) != 0)
            printf("\n%s%s%s\n", ats_style("bold"), bench->rows[i].group, ats_style("off"));
        group = bench->rows[i].group;
        print_row(&bench->rows[i]);
    }
}

static ats_code print_json(const ats_bench *bench, const setting *s, ats_err *err)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < bench->n_rows; i++) {
        const ats_bench_row *row = &bench->rows[i];
        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:b, s:s, s:s}", "key",
                                        row->key, "group", row->group, "what", row->what, "value",
                                        ats_json_real(row->value), "unit", row->unit, "must",
                                        ats_json_real(row->must), "goal", ats_json_real(row->goal),
                                        "at_most", (int)row->at_most, "verdict",
                                        ats_bench_verdict(row), "note", row->note));
    }
    return ats_json_print(json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:b, s:o}", "cpu", s->cpu,
                                    "level", s->level, "threads", bench->threads, "version",
                                    ats_version(), "git", ats_git_hash(), "clock",
                                    bench->cpu_time ? "cpu" : "wall", "quick", (int)bench->quick,
                                    "rows", rows),
                          err);
}

/* Rows of reading and writing; the folder is TMPDIR, else /tmp. */
static ats_code measure_files(ats_bench *bench, ats_err *err)
{
    const char *folder = getenv("TMPDIR");
    ats_bench_files f;
    ats_bench_row row = {.key = "reading",
                         .group = "bars",
                         .what = "reading a capture, of zstd inflating alone on all threads",
                         .unit = "%",
                         .must = 80,
                         .goal = 95};
    ats_code rc;
    ATS_TRY(ats_bench_files_measure(folder != NULL ? folder : "/tmp", bench->quick, bench->cpu_time,
                                    bench->seconds, &f, err));
    row.value = 100 * f.read / f.inflate;
    snprintf(row.note, sizeof row.note,
             "%.0f MB from the page cache (%.0f MB stored): %.2f GB/s; zstd %.2f GB/s",
             f.decoded / 1e6, f.stored / 1e6, f.read / 1e9, f.inflate / 1e9);
    ATS_TRY(ats_bench_add(bench, &row, err));
    row = (ats_bench_row){.key = "writing",
                          .group = "bars",
                          .what = "writing results, share of a run's time",
                          .unit = "%",
                          .value = 100 * f.write / f.total,
                          .must = 10,
                          .goal = 3,
                          .at_most = true};
    snprintf(row.note, sizeof row.note, "%lld cases, %.1f MB, %.0f ms of %.2f s", f.cases,
             f.result / 1e6, 1e3 * f.write, f.total);
    ATS_TRY(ats_bench_add(bench, &row, err));
out:
    return rc;
}

static ats_code measure_gpu(ats_bench *bench, ats_err *err)
{
    return ats_bench_gpu(bench, false, err);
}

/* Measurements in the order in which they are made; the machine's ceilings always come first. */
static const struct {
    const char *name;
    ats_code (*run)(ats_bench *bench, ats_err *err);
    bool asked; /* only when it is asked for */
} measurements[] = {{"pass", ats_bench_pass, false},       {"probes", ats_bench_probes, false},
                    {"sharing", ats_bench_sharing, false}, {"files", measure_files, false},
                    {"scaling", ats_bench_scaling, true},  {"gpu", measure_gpu, true}};

static bool chosen(const ats_args *args, size_t i)
{
    const char *const *names;
    const int64_t n = ats_args_list(args, "only", &names);
    if (strcmp(measurements[i].name, "scaling") == 0 && ats_args_flag(args, "scaling")) return true;
    for (int64_t k = 0; k < n; k++)
        if (strcmp(names[k], measurements[i].name) == 0) return true;
    return n == 0 && !measurements[i].asked;
}

static ats_code check_names(const ats_args *args, ats_err *err)
{
    const char *const *names;
    const int64_t n = ats_args_list(args, "only", &names);
    for (int64_t k = 0; k < n; k++) {
        bool found = false;
        for (size_t i = 0; i < sizeof measurements / sizeof *measurements; i++)
            found |= strcmp(names[k], measurements[i].name) == 0;
        if (!found)
            return ats_fail(err, ATS_E_USAGE,
                            "--only %s: it must be pass, probes, sharing, files, scaling or gpu",
                            names[k]);
    }
    return ATS_OK;
}

static ats_code measure(const ats_args *args, ats_bench *bench, ats_err *err)
{
    ats_code rc;
    ATS_TRY(check_names(args, err));
    ats_info("bench: machine");
    ATS_TRY(ats_bench_machine(bench, err));
    for (size_t i = 0; i < sizeof measurements / sizeof *measurements; i++) {
        if (!chosen(args, i)) continue;
        ats_info("bench: %s", measurements[i].name);
        ATS_TRY(measurements[i].run(bench, err));
    }
out:
    return rc;
}

static ats_code choose_clock(const ats_args *args, ats_bench *bench, ats_err *err)
{
    const char *name = ats_args_value(args, "clock");
    if (name == NULL || strcmp(name, "wall") == 0) return ATS_OK;
    bench->cpu_time = true;
    if (strcmp(name, "cpu") == 0) return ATS_OK;
    return ats_fail(err, ATS_E_USAGE, "--clock %s: it must be wall or cpu", name);
}

static ats_code run_bench(const ats_args *args, ats_err *err)
{
    ats_bench bench;
    setting s;
    ats_code rc;
    ats_bench_init(&bench, ats_args_flag(args, "quick"));
    ATS_TRY(choose_clock(args, &bench, err));
    ATS_TRY(describe(&s, err));
    ATS_TRY(measure(args, &bench, err));
    if (ats_args_flag(args, "json"))
        ATS_TRY(print_json(&bench, &s, err));
    else
        print_text(&bench, &s);
out:
    ats_bench_fini(&bench);
    return rc;
}

const ats_command ats_cmd_bench = {
    .name = "bench",
    .operands = "",
    .min_operands = 0,
    .max_operands = 0,
    .summary = "measure the kernels, and what sharing a pass saves, as ratios in one process",
    .examples = "attnstress bench\n"
                "attnstress bench --quick\n"
                "attnstress bench --scaling --json > bench.json\n"
                "attnstress bench --threads 1\n",
    .details =
        "Ceilings of the machine (fp32 multiply-adds, memory, inflating) are measured in the\n"
        "same process, so that the ratios hold on any machine. Every time is the best of\n"
        "repeated runs. A missed bar is printed, not an error: other work on the machine\n"
        "takes its share.\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_bench,
};
