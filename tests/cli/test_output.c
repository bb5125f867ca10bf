/* What a command writes beside its output: never over what it reads, pipes and links stay. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/program.h"
#include "support/check.h"

static program p;

static int set_up(void **state)
{
    (void)state;
    program_enter(&p);
    program_write(&p, "s.yaml",
                  "suite: tiny\nversion: 1\ncaptures: [x.h5]\nspans: {target: gold}\n"
                  "perturbations: [{name: d, kind: duplicates, positions: overlay, copies: 1}]\n");
    program_run(&p, "synth -q -o x.h5 --keys 64 --samples 1 --layers 1 --probes 1");
    assert_int_equal(p.status, 0);
    program_run(&p, "run s.yaml -q -o a.h5 && cp a.h5 kept.h5 && cp a.h5 b.h5");
    assert_int_equal(p.status, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    program_leave(&p);
    return 0;
}

static void what_is_read_is_not_overwritten(void **state)
{
    static const char *const lines[] = {
        "report a.h5 -o a.h5",
        "report a.h5 -o ./a.h5",
        "report b.h5 -o a.h5",
        "report b.h5 --against a.h5 -o a.h5",
        "compare a.h5 b.h5 --junit a.h5",
        "compare b.h5 a.h5 --junit ../$(basename $PWD)/a.h5",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        program_run(&p, lines[i]);
        assert_int_equal(p.status, 3);
        assert_says(p.err, "a.h5", "give another name");
        assert_string_equal(p.out, "");
        assert_true(program_same(&p, "a.h5", "kept.h5"));
    }
    program_run(&p, "compare a.h5 b.h5 --gates s.yaml --junit s.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "--junit s.yaml");
    program_run(&p, "synth -o x.h5 --truth ./x.h5");
    assert_int_equal(p.status, 3);
}

static void a_link_a_pipe_and_a_device_stay(void **state)
{
    char path[256], line[512];
    struct stat info;
    (void)state;
    program_run(
        &p, "report a.h5 -q -o plain.html > .page && ln -s target.html link.html && mkfifo pipe");
    program_run(&p, "report a.h5 -q -o link.html");
    assert_int_equal(p.status, 0);
    snprintf(path, sizeof path, "%s/link.html", p.folder);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_true(program_same(&p, "target.html", "plain.html"));
    program_run(&p, "report a.h5 -q -o link.html");
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    snprintf(line, sizeof line,
             "report a.h5 -o pipe & cd '%s' && timeout 20 cat pipe > piped.html; wait $!",
             p.folder);
    program_run(&p, line);
    snprintf(path, sizeof path, "%s/pipe", p.folder);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_true(program_same(&p, "piped.html", "plain.html"));
    program_run(&p, "compare a.h5 b.h5 -q --junit /dev/stdout");
    assert_int_equal(p.status, 0);
    assert_says(p.out, "<testsuites");
}

static void what_cannot_be_written_is_said(void **state)
{
    static const char *const lines[] = {
        "report a.h5 -o .",
        "report a.h5 -o no/such/page.html",
        "report a.h5 -o /dev/full",
        "compare a.h5 b.h5 -q --junit /dev/full",
        "compare a.h5 b.h5 -q --junit .",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        program_run(&p, lines[i]);
        assert_int_equal(p.status, 4);
        assert_says(p.err, "name a");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_not_overwritten),
        cmocka_unit_test(a_link_a_pipe_and_a_device_stay),
        cmocka_unit_test(what_cannot_be_written_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
