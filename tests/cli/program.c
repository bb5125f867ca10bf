#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

static int shell(const char *command)
{
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void program_enter(program *p)
{
    const char *base = getenv("TMPDIR");
    snprintf(p->folder, sizeof p->folder, "%s/attnstress-cli-XXXXXX",
             base != NULL && base[0] != '\0' ? base : "/tmp");
    assert_non_null(mkdtemp(p->folder));
}

void program_leave(program *p)
{
    char command[1024];
    snprintf(command, sizeof command, "chmod -R u+w '%s' && rm -rf '%s'", p->folder, p->folder);
    assert_int_equal(shell(command), 0);
}

static void slurp(const program *p, const char *name, char *out)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t n = fread(out, 1, PROGRAM_TEXT - 1, file);
    out[n] = '\0';
    fclose(file);
}

void program_run(program *p, const char *line)
{
    static char command[8192];
    snprintf(command, sizeof command,
             "cd '%s' && SUITES='%s/suites' CAPTURES='%s/examples/captures' && '%s' %s "
             "> .out 2> .err",
             p->folder, ATS_SOURCE_DIR, ATS_SOURCE_DIR, ATS_PROGRAM, line);
    p->status = shell(command);
    slurp(p, ".out", p->out);
    slurp(p, ".err", p->err);
}

void program_write(const program *p, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

bool program_has(const program *p, const char *name)
{
    char path[1024];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    return stat(path, &info) == 0;
}

bool program_same(const program *p, const char *a, const char *b)
{
    char command[1024];
    snprintf(command, sizeof command, "cd '%s' && cmp -s '%s' '%s'", p->folder, a, b);
    return shell(command) == 0;
}
