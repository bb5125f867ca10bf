/* The numeric regression cases, named after what they check. */
#ifndef ATS_TESTS_CASES_ATTENTION_H
#define ATS_TESTS_CASES_ATTENTION_H

#include "cases/scores.h"

void test_row_without_visible_key(void **state);
void test_garbage_behind_a_mask(void **state);
void test_two_lowest_masks(void **state);
void test_causal_alignment(void **state);
void test_window_counts_the_query(void **state);
void test_key_head_serves_its_group(void **state);

void test_huge_half_precision_scores(void **state);
void test_scores_far_from_zero(void **state);
void test_cap_comes_before_the_mask(void **state);
void test_sink_shares(void **state);
void test_sink_without_keys(void **state);
void test_sink_per_head(void **state);

void test_natural_log_and_merge(void **state);
void test_row_lengths(void **state);
void test_odd_widths(void **state);
void test_low_precision_sums(void **state);
void test_entropy_of_zero_weights(void **state);
void test_divergence_of_zero_weights(void **state);
void test_top_k_ties(void **state);
void test_appended_copy(void **state);
void test_batch_mates_and_threads(void **state);

#endif
