/* Laws of metrics.md as properties of random problems. None needs a reference value: each compares
 * numbers of one evaluation with each other, or two evaluations that must agree. */
#ifndef ATS_TESTS_LAWS_LAWS_H
#define ATS_TESTS_LAWS_LAWS_H

#include "support/check.h"
#include "support/compare.h"
#include "support/problems.h"

extern const ats_backend *laws_backend;

enum { LAW_SEEDS = 8 };

/* One random problem with one edit, evaluated. */
typedef struct law_case {
    ats_arena arena;
    problem_spec spec;
    ats_problem problem;
    ats_edit edit;
    stats_set set;
    char text[256];
} law_case;

/* Problem of a seed: small, the given contract features cleared by the caller through `adjust`. */
void law_spec(uint64_t seed, problem_spec *out);
void law_start(law_case *c, const problem_spec *spec);
void law_edit(law_case *c, enum edit_kind kind);
void law_run(law_case *c);
void law_end(law_case *c);

/* Bars of a row: the wider of the base's and the variant's. */
ats_bars law_bars(law_case *c, int64_t row);
/* sum w |v| of the base plus that of the variant: the scale of output differences. */
double law_scale(law_case *c, int64_t row);
bool law_defined(const law_case *c, int64_t row);

/* |got - want| <= bar, else a message that names the problem, the row and what was compared. */
void law_near(const law_case *c, int64_t row, const char *what, double got, double want,
              double bar);
/* |x - y|_2 <= bar over the value width. */
void law_vector(const law_case *c, int64_t row, const char *what, const float *x, const float *y,
                double bar);

void test_identity(void **state);
void test_overlay(void **state);
void test_duplicate(void **state);
void test_masking(void **state);
void test_payload_swap(void **state);
void test_temperature(void **state);
void test_move_all(void **state);
void test_parts_add_up(void **state);

void test_shares_add_up(void **state);
void test_permuted_keys(void **state);
void test_constant_added(void **state);

#endif
