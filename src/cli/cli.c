#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/parallel.h"
#include "base/usage.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/style.h"
#include "engine/interrupt.h"
#include "engine/version.h"
#include "kernels/backend.h"

void ats_version_print(FILE *stream)
{
    const ats_backend *cpu = NULL;
    ats_err err = {.code = ATS_OK};
    fprintf(stream, "attnstress %s (git %s)\nHDF5 %s\n", ats_version(), ats_git_hash(),
            ats_hdf5_version());
    if (ats_backend_find("cpu", &cpu, &err) == ATS_OK && cpu->detail != NULL)
        fprintf(stream, "CPU %s\n", cpu->detail());
}

static void print_error(const ats_err *err)
{
    if (err->text[0] == '\0') return;
    /* sentences that carry their own place and "error:" stay as they are */
    const bool placed = strstr(err->text, ": error: ") != NULL;
    ats_log_failure(ats_code_name(err->code), placed ? "" : "attnstress: error: ", err->text);
}

/* Before anything is parsed, so that a wrong command line is told in the wanted form too; a wrong
 * value is refused with the other options. */
static void choose_log(int argc, char **argv)
{
    static const char name[] = "--log-format";
    const size_t n = sizeof name - 1;
    ats_err ignored;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value = NULL;
        if (strncmp(argv[i], name, n) != 0) continue;
        if (argv[i][n] == '=') value = argv[i] + n + 1;
        if (argv[i][n] == '\0' && i + 1 < argc) value = argv[i + 1];
        if (value != NULL && ats_log_format_set(value, &ignored) != ATS_OK) return;
    }
}

static void say_end(const char *command, double start, int status)
{
    const ats_usage usage = ats_usage_read("");
    const ats_log_field fields[] = {
        {.key = "command", .text = command},
        {.key = "exit_status", .number = status},
        {.key = "seconds", .number = ats_clock() - start},
        {.key = "peak_memory_bytes", .number = (double)usage.peak_bytes}};
    ats_event("end", fields, sizeof fields / sizeof *fields, "exit status %d", status);
}

/* What the program wrote must have arrived: a full disk behind stdout is a failure. */
static ats_code flush_stdout(ats_code rc, ats_err *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return rc;
    if (rc != ATS_OK && rc != ATS_E_GATE) return rc;
    return ats_fail(err, ATS_E_IO, "standard output could not be written");
}

static ats_code set_up(const ats_args *args, ats_err *err)
{
    int64_t threads = 0;
    ats_code rc = ats_args_int(args, "threads", 0, 1, 4096, &threads, err);
    if (rc == ATS_OK) rc = ats_style_set(ats_args_value(args, "color"), err);
    if (rc == ATS_OK) rc = ats_log_format_set(ats_args_value(args, "log-format"), err);
    if (rc != ATS_OK) return rc;
    if (threads > 0) ats_set_threads((int)threads);
    if (ats_args_flag(args, "quiet"))
        ats_log_set_level(ATS_LOG_QUIET);
    else if (ats_args_flag(args, "verbose"))
        ats_log_set_level(ATS_LOG_VERBOSE);
    return ATS_OK;
}

static bool long_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) return true;
    return false;
}

static ats_code run_command(const ats_command *command, int argc, char **argv, ats_err *err)
{
    ats_args args = {0};
    ats_code rc;
    ATS_TRY(ats_args_parse(command, argc, argv, &args, err));
    if (ats_args_flag(&args, "help")) {
        if (long_help(argc, argv))
            ats_help_long(stdout, command);
        else
            ats_help_short(stdout, command);
        goto out;
    }
    ATS_TRY(set_up(&args, err));
    ATS_TRY(command->run(&args, err));
out:
    ats_args_fini(&args);
    return rc;
}

static ats_code fail_unknown(const char *name, ats_err *err)
{
    enum { ROOM = 32 };
    const char *names[ROOM + 1];
    int64_t n = 0, kept = 0;
    const ats_command *const *all = ats_commands(&n);
    for (; kept < n && kept < ROOM; kept++) names[kept] = all[kept]->name;
    names[kept] = NULL;
    const char *near = ats_nearest(name, names);
    if (near != NULL)
        return ats_fail(err, ATS_E_USAGE,
                        "there is no command %s; did you mean %s? `attnstress help` lists them",
                        name, near);
    return ats_fail(err, ATS_E_USAGE, "there is no command %s; `attnstress help` lists them", name);
}

static const char *program = "attnstress";

const char *ats_cli_program(void) { return program; }

static ats_code dispatch(int argc, char **argv, ats_err *err)
{
    if (argc < 2) {
        ats_help_program(stderr);
        return ats_fail(err, ATS_E_USAGE, "no command is given");
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        ats_version_print(stdout);
        return ATS_OK;
    }
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        ats_help_program(stdout);
        return ATS_OK;
    }
    const ats_command *command = ats_command_find(word);
    if (command == NULL) return fail_unknown(word, err);
    return run_command(command, argc - 2, argv + 2, err);
}

/* Idle OpenMP threads spin by default, which takes the processors from other jobs of a shared
 * machine and twice the time of a run there. The library reads its environment when it is loaded,
 * so the program starts itself once more; where that fails it goes on as it is. Not where OpenMP is
 * told to bind threads: the first one is then bound already, and a second start would see one
 * processor. */
static void wait_without_spinning(int argc, char **argv)
{
    static const char *const told[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND",
                                       "OMP_PLACES", "GOMP_CPU_AFFINITY"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (getenv(told[i]) != NULL) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
    if (argc > 1 && strcmp(argv[1], "run") == 0) ats_interrupt_hold();
    execv("/proc/self/exe", argv);
}

int ats_cli_main(int argc, char **argv)
{
    wait_without_spinning(argc, argv);
    if (argc > 0 && argv[0][0] != '\0') program = argv[0];
    signal(SIGXFSZ, SIG_IGN); /* a write past the limit on file sizes fails, and is told */
    const double start = ats_clock();
    ats_err err = {.code = ATS_OK};
    choose_log(argc, argv);
    ats_code rc = flush_stdout(dispatch(argc, argv, &err), &err);
    if (rc != ATS_OK) print_error(&err);
    say_end(argc > 1 ? argv[1] : "", start, ats_code_exit(rc));
    return ats_code_exit(rc);
}
