#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/parallel.h"
#include "cli/session.h"
#include "engine/version.h"
#include "kernels/backend.h"

static const ats_option options[] = {
    {"json", 0, ATS_OPT_FLAG, NULL, "as JSON", false},
};

enum { MAX_BACKENDS = 16 };

typedef struct findings {
    int64_t n_backends;
    const ats_backend *const *backends;
    char why[MAX_BACKENDS][512]; /* "" when it can run */
    char automatic[32];
    char plugin[PATH_MAX]; /* folder of libh5zstd.so, "" when it was not found */
    char lock[256];        /* "" when locks work here */
    const char *cpu;
} findings;

/* Beside the program in a build, in lib/ of the prefix when installed. */
static void find_plugin(char out[PATH_MAX])
{
    static const char *const places[] = {"plugin", "../plugin", "../lib/attnstress/plugin",
                                         "../lib/hdf5/plugin"};
    char self[PATH_MAX], path[PATH_MAX + 64], real[PATH_MAX];
    out[0] = '\0';
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return;
    self[length] = '\0';
    const char *folder = dirname(self);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s/%s/libh5zstd.so", folder, places[i]);
        if (realpath(path, real) == NULL) continue;
        snprintf(out, PATH_MAX, "%s", dirname(real));
        return;
    }
}

/* Takes and drops a lock on a file made here: some network file systems cannot. */
static void try_lock(char *out, size_t size)
{
    char name[64];
    out[0] = '\0';
    snprintf(name, sizeof name, ".attnstress-lock-%ld", (long)getpid());
    const int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0) {
        snprintf(out, size, "this folder cannot be written: %s", strerror(errno));
        return;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        snprintf(out, size, "%s; set HDF5_USE_FILE_LOCKING=FALSE for this file system",
                 strerror(errno));
    close(fd);
    unlink(name);
}

static void look(findings *f)
{
    const ats_backend *found = NULL;
    ats_err err = {.code = ATS_OK};
    f->backends = ats_backends(&f->n_backends);
    ATS_ASSERT(f->n_backends <= MAX_BACKENDS);
    f->cpu = "";
    for (int64_t i = 0; i < f->n_backends; i++) {
        err.text[0] = '\0';
        const ats_backend *b = f->backends[i];
        if (b->probe(&err) != ATS_OK)
            snprintf(f->why[i], sizeof f->why[i], "%.500s", err.text);
        else if (strcmp(b->name, "cpu") == 0 && b->detail != NULL)
            f->cpu = b->detail();
    }
    const bool any = ats_backend_find("auto", &found, &err) == ATS_OK;
    snprintf(f->automatic, sizeof f->automatic, "%s", any ? found->name : "none");
    find_plugin(f->plugin);
    try_lock(f->lock, sizeof f->lock);
}

static void print_text(const findings *f)
{
    const char *locking = getenv("HDF5_USE_FILE_LOCKING");
    ats_version_print(stdout);
    printf("threads %d\n\nbackends (auto takes %s):\n", ats_threads(), f->automatic);
    for (int64_t i = 0; i < f->n_backends; i++) {
        const bool here = f->why[i][0] == '\0';
        printf("  %-10s %s%s%s  %s\n", f->backends[i]->name, ats_style(here ? "green" : "yellow"),
               here ? "here  " : "absent", ats_style("off"),
               here ? f->backends[i]->summary : f->why[i]);
    }
    printf("\nfile locking in this folder: %s", f->lock[0] == '\0' ? "works" : f->lock);
    printf("%s%s\n", locking != NULL ? "; HDF5_USE_FILE_LOCKING=" : "",
           locking != NULL ? locking : "");
    if (f->plugin[0] != '\0')
        printf("to read captures and results in h5py, ncdump and h5dump:\n"
               "  export HDF5_PLUGIN_PATH=%s\n",
               f->plugin);
    else
        printf("the zstd plugin libh5zstd.so was not found beside the program; in Python use\n"
               "  pip install hdf5plugin\n");
}

static ats_code print_json(const findings *f, ats_err *err)
{
    json_t *backends = json_array();
    for (int64_t i = 0; i < f->n_backends; i++)
        json_array_append_new(backends,
                              json_pack("{s:s, s:b, s:s, s:s}", "name", f->backends[i]->name,
                                        "available", f->why[i][0] == '\0', "summary",
                                        f->backends[i]->summary, "reason", f->why[i]));
    return ats_json_print(
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:s, s:s}", "version", ats_version(), "git",
                  ats_git_hash(), "hdf5", ats_hdf5_version(), "cpu", f->cpu, "threads",
                  ats_threads(), "auto", f->automatic, "backends", backends, "plugin_path",
                  f->plugin, "file_locking", f->lock[0] == '\0' ? "works" : f->lock),
        err);
}

static ats_code run_doctor(const ats_args *args, ats_err *err)
{
    static findings f;
    look(&f);
    if (ats_args_flag(args, "json")) return print_json(&f, err);
    print_text(&f);
    return ATS_OK;
}

const ats_command ats_cmd_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "backends and why each is or is not there, CPU level, filter path, file locking",
    .examples = "attnstress doctor\nattnstress doctor --json",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_doctor,
};
