#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/program.h"
#include "support/check.h"

static program p;

static int set_up(void **state)
{
    (void)state;
    program_enter(&p);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    program_leave(&p);
    return 0;
}

/* One call, its exit status, and words of what it must say on each stream ("" says nothing). */
typedef struct golden {
    const char *line;
    int status;
    const char *out[4], *err[4];
} golden;

static const golden calls[] = {
    {"", 3, {""}, {"usage: attnstress COMMAND", "no command is given"}},
    {"-h", 0, {"usage: attnstress COMMAND", "run", "exit status"}, {""}},
    {"--help", 0, {"commands:"}, {""}},
    {"help", 0, {"commands:"}, {""}},
    {"help run", 0, {"examples:", "attnstress run suites/quickstart.yaml"}, {""}},
    {"help walk", 3, {""}, {"there is no command walk"}},
    {"--version", 0, {"attnstress 0.", "git ", "HDF5 1."}, {""}},
    {"rum x.yaml", 3, {""}, {"there is no command rum", "did you mean run"}},
    {"frobnicate", 3, {""}, {"there is no command frobnicate", "attnstress help"}},
    {"run", 3, {""}, {"run needs SUITE"}},
    {"run -h", 0, {"usage: attnstress run SUITE", "-o, --output OUT.h5", "--threads N"}, {""}},
    {"run --help", 0, {"examples:", "exit status 1"}, {""}},
    {"run a.yaml b.yaml", 3, {""}, {"one argument too many: b.yaml"}},
    {"run a.yaml --ouput x", 3, {""}, {"no option --ouput", "did you mean --output"}},
    {"run a.yaml -z", 3, {""}, {"no option -z"}},
    {"run a.yaml -o", 3, {""}, {"--output needs a value"}},
    {"run a.yaml -o x -o y", 3, {""}, {"given twice"}},
    {"run a.yaml --json=1", 3, {""}, {"--json takes no value"}},
    {"run a.yaml --threads 0", 3, {""}, {"--threads 0: must be from 1"}},
    {"run a.yaml --threads two", 3, {""}, {"--threads two: not a whole number"}},
    {"run a.yaml --color maybe", 3, {""}, {"auto, always or never"}},
    {"bench -h", 0, {"usage: attnstress bench", "--scaling", "--json"}, {""}},
    {"bench --clock sun", 3, {""}, {"--clock sun", "wall or cpu"}},
    {"bench --only everything", 3, {""}, {"--only everything", "sharing"}},
    {"run missing.yaml", 3, {""}, {"missing.yaml"}},
    {"plan missing.yaml", 3, {""}, {"missing.yaml"}},
    {"inspect missing.h5", 3, {""}, {"missing.h5"}},
    {"inspect $CAPTURES/recall-short.h5",
     0,
     {"layer 0: 4 query heads", "s00-gold", "probes:"},
     {""}},
    {"inspect $CAPTURES/recall-short.h5 --json", 0, {"\"model_id\"", "\"readouts\""}, {""}},
    {"verify $CAPTURES/recall-short.h5 --target golden",
     3,
     {""},
     {"no sample that the laws run on has a span of name or role 'golden'", "inspect"}},
    {"synth -o s.h5 --truth s.h5", 3, {""}, {"both name s.h5"}},
    {"run $SUITES/quickstart.yaml -o .", 4, {""}, {"is a folder"}},
    {"run $SUITES/quickstart.yaml -o ''", 3, {""}, {"empty name"}},
    {"run $SUITES/quickstart.yaml --set perturbations.rivals.count=[1,16,64] -qo ok.h5",
     0,
     {""},
     {""}},
    {"doctor", 0, {"backends (auto takes", "reference", "cublas", "file locking"}, {""}},
    {"doctor --json", 0, {"\"backends\"", "\"reason\"", "\"plugin_path\""}, {""}},
    {"schema", 0, {"\"$schema\"", "draft-07"}, {""}},
    {"import -h", 0, {"usage: attnstress import HEADER.yaml TENSORS...", "--output"}, {""}},
    {"import h.yaml -o x.h5", 3, {""}, {"import needs HEADER.yaml TENSORS..."}},
    {"import h.yaml t.npy", 3, {""}, {"import needs --output CAPTURE"}},
    {"import h.yaml t.npy -o x.h5", 3, {""}, {"h.yaml"}},
    {"import $SUITES/../tests/golden/import/no-scale.yaml "
     "$SUITES/../tests/golden/import/tensors.safetensors -o x.h5",
     3,
     {""},
     {"no-scale.yaml:5:5: error", "lacks the key 'scale'"}},
};

static void check_words(const char *text, const char *const *words, const char *line,
                        const char *stream)
{
    for (int i = 0; i < 4 && words[i] != NULL; i++) {
        const bool right = words[i][0] != '\0' ? strstr(text, words[i]) != NULL : text[0] == '\0';
        if (right) continue;
        print_error("attnstress %s: %s lacks \"%s\" (or should be empty):\n%s\n", line, stream,
                    words[i], text);
        fail();
    }
}

static void calls_say_what_they_must(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        program_run(&p, calls[i].line);
        if (p.status != calls[i].status) {
            print_error("attnstress %s: exit status %d, should be %d\n%s%s\n", calls[i].line,
                        p.status, calls[i].status, p.out, p.err);
            fail();
        }
        check_words(p.out, calls[i].out, calls[i].line, "stdout");
        check_words(p.err, calls[i].err, calls[i].line, "stderr");
    }
}

static void short_options_join_their_values(void **state)
{
    (void)state;
    program_run(&p, "run -qvofile.h5 --threads=2 -- missing.yaml");
    assert_int_equal(p.status, 3);
    assert_says(p.err, "missing.yaml");
}

static void a_full_disk_behind_stdout_is_a_failure(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0) skip();
    program_run(&p, "--version > /dev/full; echo status $?");
    assert_says(p.out, "status 4");
}

/* The signal for it would kill the program and leave its part behind. */
static void a_limit_on_file_sizes_is_a_full_disk(void **state)
{
    (void)state;
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit narrow = {.rlim_cur = 100 << 10, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &narrow), 0);
    program_run(&p, "run $SUITES/quickstart.yaml -o big.h5");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(p.status, 4);
    assert_says(p.err, "big.h5", "File too large", "disk full");
    assert_false(program_has(&p, "big.h5"));
    assert_false(program_has(&p, "big.h5.tmp"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_say_what_they_must),
        TEST(short_options_join_their_values),
        TEST(a_full_disk_behind_stdout_is_a_failure),
        TEST(a_limit_on_file_sizes_is_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
