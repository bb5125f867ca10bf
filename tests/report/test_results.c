/* The results file: what is written is read back, and nothing half-written has the final name. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "h5/attr.h"
#include "report/sample_result.h"
#include "support/check.h"

static char folder[] = "results-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* every test takes its files away */
}

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static int64_t find_metric(const char *name)
{
    int64_t n = 0;
    const ats_metric *const *all = ats_metrics(&n);
    for (int64_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0) return i;
    fail();
    return -1;
}

static void same_number(double got, float want)
{
    if (isnan(want))
        assert_true(isnan(got));
    else
        assert_near(got, (double)want, 0);
}

/* Every number of a variable is the one written there. */
static void check_variable(ats_result_file *file, const char *name, bool base,
                           const char *const *axes, int rank)
{
    ats_err err;
    ats_result_variable v;
    const int64_t m = find_metric(base ? name + 5 : name);
    int64_t n = 0;
    const ats_metric *metric = ats_metrics(&n)[m];
    assert_ok(ats_result_read(file, name, &v, &err), &err);
    assert_int_equal(v.rank, rank);
    for (int i = 0; i < rank; i++) assert_string_equal(v.axis[i], axes[i]);
    assert_int_equal(v.extent[0], base ? SAMPLES : SAMPLES * VARIANTS);
    assert_int_equal(v.extent[1], LAYERS);
    int64_t cell = 1;
    for (int i = 2; i < rank; i++) cell *= v.extent[i];
    for (int64_t i = 0; i < v.extent[0] * LAYERS * cell; i++) {
        const int64_t where = i / cell / LAYERS, layer = i / cell % LAYERS;
        if (!metric->integer) {
            same_number(v.values[i], sample_number(m, where, layer, i % cell));
            continue;
        }
        const int32_t want = sample_integer(m, where, layer, i % cell);
        same_number(v.values[i], want == metric->fill ? NAN : (float)want);
    }
    free(v.values);
}

static void check_file(const char *path)
{
    ats_err err;
    ats_result_file *file = NULL;
    assert_ok(ats_result_open(path, &file, &err), &err);
#define AXES(...) (const char *const[]){__VA_ARGS__}
    check_variable(file, "tv", false, AXES("case", "layer", "head", "probe"), 4);
    check_variable(file, "top_key", false, AXES("case", "layer", "head", "probe"), 4);
    check_variable(file, "mass", false, AXES("case", "layer", "head", "probe", "span"), 5);
    check_variable(file, "base_mass", true, AXES("sample", "layer", "head", "probe", "span"), 5);
    check_variable(file, "delta_norm", false, AXES("case", "layer", "head", "probe", "part"), 5);
    check_variable(file, "topk_index", false, AXES("case", "layer", "head", "probe", "k"), 5);
    check_variable(file, "base_topk_index", true, AXES("sample", "layer", "head", "probe", "k"), 5);
    check_variable(file, "readout", false,
                   AXES("case", "layer", "head", "probe", "readout_direction", "span"), 6);
    check_variable(file, "contribution", false,
                   AXES("case", "layer", "head", "probe", "span", "dv"), 6);
    ats_result_close(file);
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *path = in_folder("a.h5");
    ats_err err;
    static const char *const compressions[] = {"zstd", "deflate", "none"};
    for (size_t i = 0; i < 3; i++) {
        const sample_result how = {.compression = compressions[i]};
        assert_ok(sample_result_write(path, &how, &err), &err);
        check_file(path);
    }
    unlink(path);
}

static void test_small_pieces(void **state)
{
    (void)state;
    const char *path = in_folder("b.h5");
    ats_err err;
    for (int64_t batch = 1; batch <= 2; batch++) {
        assert_ok(sample_result_write(path, &(sample_result){.batch = batch}, &err), &err);
        check_file(path);
    }
    unlink(path);
}

static void test_coordinates_and_attributes(void **state)
{
    (void)state;
    const char *path = in_folder("c.h5");
    ats_err err;
    ats_result_file *file = NULL;
    ats_result_variable v;
    char **texts = NULL;
    int64_t n = 0;
    char text[64];
    assert_ok(sample_result_write(path, &(sample_result){.compression = NULL}, &err), &err);
    assert_ok(ats_result_open(path, &file, &err), &err);
    assert_ok(ats_result_texts(file, "sample", &texts, &n, &err), &err);
    assert_int_equal(n, SAMPLES);
    assert_string_equal(texts[1], "caf\xc3\xa9");
    ats_result_free_texts(texts, n);
    assert_ok(ats_result_texts(file, "span", &texts, &n, &err), &err);
    assert_string_equal(texts[n - 1], "inserted");
    ats_result_free_texts(texts, n);
    assert_ok(ats_result_texts(file, "suite", &texts, &n, &err), &err);
    assert_string_equal(texts[0], "name: small\n");
    ats_result_free_texts(texts, n);
    assert_ok(ats_result_read(file, "layer", &v, &err), &err);
    assert_near(v.values[1], 9, 0);
    free(v.values);
    assert_ok(ats_result_read(file, "dose", &v, &err), &err);
    assert_string_equal(v.axis[0], "case");
    assert_true(isnan(v.values[2]));
    free(v.values);
    assert_ok(ats_result_read(file, "undefined_cells", &v, &err), &err);
    assert_near(v.values[5 * LAYERS + 1], 5, 0);
    free(v.values);
    assert_ok(ats_result_attribute(file, "seed", text, sizeof text, &err), &err);
    assert_string_equal(text, "1099511627776");
    assert_ok(ats_result_attribute(file, "noise_floor", text, sizeof text, &err), &err);
    assert_string_equal(text, "0.25");
    assert_ok(ats_result_attribute(file, "format", text, sizeof text, &err), &err);
    assert_string_equal(text, "attnstress-result");
    assert_int_equal(ats_result_attribute(file, "colour", text, sizeof text, &err), ATS_E_INPUT);
    assert_says(err.text, path, "colour");
    assert_int_equal(ats_result_read(file, "kind", &v, &err), ATS_E_INPUT);
    assert_int_equal(ats_result_read(file, "nothing", &v, &err), ATS_E_INPUT);
    assert_says(err.text, path, "nothing");
    ats_result_close(file);
    unlink(path);
}

static void test_head_detail(void **state)
{
    (void)state;
    const char *path = in_folder("d.h5");
    ats_err err;
    ats_result_file *file = NULL;
    ats_result_variable v;
    assert_ok(sample_result_write(path, &(sample_result){.detail_head = true}, &err), &err);
    assert_ok(ats_result_open(path, &file, &err), &err);
    check_variable(file, "tv", false, AXES("case", "layer", "head"), 3);
    check_variable(file, "mass", false, AXES("case", "layer", "head", "span"), 4);
    assert_ok(ats_result_read(file, "worst_probe", &v, &err), &err);
    assert_int_equal(v.rank, 3);
    assert_near(v.values[1], 1, 0);
    free(v.values);
    assert_ok(ats_result_read(file, "worst_log_mass_shift", &v, &err), &err);
    assert_near(v.values[HEADS * LAYERS], -1.0 * HEADS, 0); /* case 1, layer 0, head 0 */
    free(v.values);
    ats_result_close(file);
    unlink(path);
}

static void test_equal_runs_equal_bytes(void **state)
{
    (void)state;
    ats_err err;
    char *bytes[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        const char *path = in_folder(i == 0 ? "first.h5" : "second.h5");
        assert_ok(sample_result_write(path, &(sample_result){.batch = 0}, &err), &err);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        bytes[i] = malloc(1 << 24);
        sizes[i] = fread(bytes[i], 1, 1 << 24, f);
        fclose(f);
        unlink(path);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* RC-17: no partial file ever has the final name, and an older good file stays. */
static void test_abort_leaves_nothing(void **state)
{
    (void)state;
    const char *path = in_folder("e.h5"), *temporary = in_folder("e.h5.tmp");
    ats_err err;
    assert_ok(sample_result_write(path, &(sample_result){.unfinished = true}, &err), &err);
    assert_false(exists(path));
    assert_false(exists(temporary));
    assert_ok(sample_result_write(path, &(sample_result){.batch = 0}, &err), &err);
    assert_ok(sample_result_write(path, &(sample_result){.unfinished = true}, &err), &err);
    check_file(path);
    unlink(path);
}

/* RC-17: a file that opens is not enough; without the completion marker it is refused. */
static void test_incomplete_and_foreign_files_are_refused(void **state)
{
    (void)state;
    const char *path = in_folder("f.h5");
    ats_err err = {.code = ATS_OK};
    ats_result_file *file = NULL;
    ats_h5_file raw;
    static const struct {
        const char *format;
        int64_t version, complete;
        const char *says;
    } cases[] = {{"attnstress-result", 1, 0, "not complete"},
                 {"attnstress-result", 1, -1, "not complete"},
                 {"attnstress-result", 7, 1, "install a newer attnstress"},
                 {"attnstress-result", 0, 1, "ever released"},
                 {"attnstress-capture", 1, 1, "attnstress-capture"},
                 {NULL, 1, 1, "format"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(ats_h5_create(path, &raw, &err), &err);
        if (cases[i].format != NULL)
            assert_ok(ats_h5_put_text(&raw, "/", "format", cases[i].format, &err), &err);
        assert_ok(ats_h5_put_i64(&raw, "/", "format_version", cases[i].version, &err), &err);
        if (cases[i].complete >= 0)
            assert_ok(ats_h5_put_i64(&raw, "/", "complete", cases[i].complete, &err), &err);
        assert_ok(ats_h5_commit(&raw, &err), &err);
        assert_int_equal(ats_code_exit(ats_result_open(path, &file, &err)), 3);
        assert_says(err.text, path, cases[i].says);
    }
    unlink(path);
    assert_int_not_equal(ats_result_open(path, &file, &err), ATS_OK);
    assert_says(err.text, path);
}

static void test_unwritable_folder(void **state)
{
    (void)state;
    ats_err err;
    const char *path = in_folder("no/such/folder.h5");
    assert_int_equal(sample_result_write(path, &(sample_result){.batch = 0}, &err), ATS_E_IO);
    assert_says(err.text, path);
}

/* Exit status 0 when a write that runs into the limit fails as it should. A process of its own:
 * HDF5 never gives back what it could not write. */
static int write_with_limit(const char *path, const char *temporary, rlim_t size)
{
    ats_err err = {.code = ATS_OK};
    const struct rlimit small = {size, size};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) return 2;
    if (sample_result_write(path, &(sample_result){.compression = "none"}, &err) != ATS_E_IO)
        return 3;
    if (strstr(err.text, path) == NULL) return 4;
    return exists(path) || exists(temporary) ? 5 : 0;
}

/* A size limit of the process stands in for a full disk: the write fails in the same place. */
static void test_full_disk(void **state)
{
    (void)state;
    const char *path = in_folder("g.h5"), *temporary = in_folder("g.h5.tmp");
    for (rlim_t size = 4096; size <= 262144; size *= 8) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) _exit(write_with_limit(path, temporary, size));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void test_bad_coordinates_and_compression(void **state)
{
    (void)state;
    const char *path = in_folder("h.h5");
    ats_err err;
    assert_int_equal(sample_result_write(path, &(sample_result){.compression = "lzma"}, &err),
                     ATS_E_SUITE);
    assert_says(err.text, "lzma", "zstd, deflate or none");
    assert_false(exists(path));
    const int64_t index[] = {0};
    const ats_results_shape shape = {
        .n_cases = 1, .n_samples = 1, .n_layers = 1, .n_heads = 1, .n_probes = 1};
    static const struct {
        const char *name, *axis;
    } bad[] = {{"sample", "case"}, {"x", "nowhere"}, {"x", "span"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const ats_coordinate c = {
            .name = bad[i].name, .axis = bad[i].axis, .type = ATS_TYPE_I64, .i64 = index};
        const ats_results_options options = {.n_coordinates = 1, .coordinates = &c};
        ats_results *results = NULL;
        assert_int_equal(ats_results_create(path, &shape, &options, &results, &err),
                         ATS_E_INTERNAL);
        assert_says(err.text, bad[i].name, bad[i].axis);
    }
}

static void test_bytes_of_a_plan(void **state)
{
    (void)state;
    const ats_results_shape nightly = {.n_cases = 4800,
                                       .n_samples = 16,
                                       .n_layers = 26,
                                       .n_heads = 16,
                                       .n_probes = 12,
                                       .n_spans = 14,
                                       .n_top = 8,
                                       .d_v = 128};
    const ats_metric *tv = ats_metric_find("tv"), *mass = ats_metric_find("mass");
    assert_int_equal(ats_results_bytes(&nightly, tv, false, false), 4LL * 4800 * 26 * 16 * 12);
    assert_int_equal(ats_results_bytes(&nightly, tv, true, false), 0);
    assert_int_equal(ats_results_bytes(&nightly, mass, true, false), 4LL * 16 * 26 * 16 * 12 * 14);
    assert_int_equal(ats_results_bytes(&nightly, ats_metric_find("readout"), false, false), 0);
    assert_int_equal(ats_results_bytes(&nightly, ats_metric_find("contribution"), false, false), 0);
    assert_int_equal(ats_results_bytes(&nightly, ats_metric_find("contribution"), false, true),
                     4LL * 4800 * 26 * 16 * 12 * 14 * 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_disk), /* forks, so before any thread is made */
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_small_pieces),
        cmocka_unit_test(test_coordinates_and_attributes),
        cmocka_unit_test(test_head_detail),
        cmocka_unit_test(test_equal_runs_equal_bytes),
        cmocka_unit_test(test_abort_leaves_nothing),
        cmocka_unit_test(test_incomplete_and_foreign_files_are_refused),
        cmocka_unit_test(test_unwritable_folder),
        cmocka_unit_test(test_bad_coordinates_and_compression),
        cmocka_unit_test(test_bytes_of_a_plan),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
