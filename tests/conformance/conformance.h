/* The backend suite: everything a backend must do, run with the name of a backend. */
#ifndef ATS_TESTS_CONFORMANCE_CONFORMANCE_H
#define ATS_TESTS_CONFORMANCE_CONFORMANCE_H

#include "support/check.h"
#include "support/compare.h"
#include "support/problems.h"

extern const ats_backend *conformance_backend;
extern const ats_backend *conformance_reference;
ats_bar_path conformance_path(void);

/* Problem of the specification, edits, both backends, comparison. */
void conformance_check(report *r, const problem_spec *spec, int64_t n_edits);

void test_window_edges(void **state);
void test_chunk_edges(void **state);
void test_passes_apart(void **state);
void test_row_counts(void **state);
void test_equal_scores_exact(void **state);
void test_rising_logits(void **state);
void test_rows_without_a_key(void **state);
void test_no_keys_at_all(void **state);
void test_visible_nan_is_refused(void **state);
void test_hidden_nan_is_not_read(void **state);
void test_bad_contract_is_refused(void **state);

#endif
