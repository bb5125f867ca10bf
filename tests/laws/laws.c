#include "laws/laws.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/truth.h"

const ats_backend *laws_backend;

void law_spec(uint64_t seed, problem_spec *out)
{
    static const int64_t KEYS[] = {33, 65, 257};
    problem_spec_draw(1000 + seed, out);
    out->n_keys = KEYS[seed % 3];
    out->empty_rows = false;
    if (out->d_qk < 5) out->d_qk = out->d_v = 16;
}

void law_start(law_case *c, const problem_spec *spec)
{
    *c = (law_case){.spec = *spec};
    ats_arena_init(&c->arena, false);
    problem_make(&c->arena, spec, &c->problem);
    problem_spec_text(spec, c->text, sizeof c->text);
}

void law_edit(law_case *c, enum edit_kind kind)
{
    edit_make(&c->arena, &c->problem, c->spec.seed, kind, &c->edit);
}

void law_run(law_case *c)
{
    evaluate_all(&c->arena, laws_backend, &c->problem, &c->edit, 1, &c->set);
}

void law_end(law_case *c) { ats_arena_fini(&c->arena); }

static void truths(law_case *c, int64_t row, row_truth *base, row_truth *variant)
{
    row_truth_make(&c->arena, &c->problem, NULL, row, base);
    row_truth_make(&c->arena, &c->problem, &c->edit, row, variant);
}

ats_bars law_bars(law_case *c, int64_t row)
{
    row_truth base, variant;
    truths(c, row, &base, &variant);
    const bool exact = strcmp(laws_backend->name, "reference") == 0;
    return ats_bars_of(exact ? ATS_BAR_DOUBLE : ATS_BAR_FP32, fmax(base.bound, variant.bound),
                       fmax(base.sd, variant.sd));
}

double law_scale(law_case *c, int64_t row)
{
    row_truth base, variant;
    truths(c, row, &base, &variant);
    return base.abs_sum + variant.abs_sum;
}

bool law_defined(const law_case *c, int64_t row)
{
    return isfinite(c->set.base.route.lse[row]) && isfinite(c->set.variants[0].route.lse[row]);
}

void law_near(const law_case *c, int64_t row, const char *what, double got, double want, double bar)
{
    if (got == want) return;
    const double difference = fabs(got - want);
    if (difference <= bar) return;
    fail_msg("%s: row %lld: %s is %.17g, should be %.17g; off by %.3g, bar %.3g", c->text,
             (long long)row, what, got, want, difference, bar);
}

void law_vector(const law_case *c, int64_t row, const char *what, const float *x, const float *y,
                double bar)
{
    double square = 0;
    for (int64_t j = 0; j < c->problem.d_v; j++) {
        const double difference = (double)x[j] - (y != NULL ? (double)y[j] : 0);
        square += difference * difference;
    }
    law_near(c, row, what, sqrt(square), 0, bar);
}

int main(int argc, char **argv)
{
    ats_err err = {.code = ATS_OK};
    if (argc != 2 || ats_backend_find(argv[1], &laws_backend, &err) != ATS_OK) {
        fprintf(stderr, "usage: test_laws BACKEND: %s\n", err.text);
        return 3;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),       cmocka_unit_test(test_overlay),
        cmocka_unit_test(test_duplicate),      cmocka_unit_test(test_masking),
        cmocka_unit_test(test_payload_swap),   cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_move_all),       cmocka_unit_test(test_parts_add_up),
        cmocka_unit_test(test_shares_add_up),  cmocka_unit_test(test_permuted_keys),
        cmocka_unit_test(test_constant_added),
    };
    return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL) == 0 ? 0 : 1;
}
