#include "cases/attention.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    ats_err err = {.code = ATS_OK};
    if (argc != 2 || ats_backend_find(argv[1], &cases_backend, &err) != ATS_OK) {
        fprintf(stderr, "usage: test_cases_attention BACKEND: %s\n", err.text);
        return 3;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_without_visible_key),
        cmocka_unit_test(test_garbage_behind_a_mask),
        cmocka_unit_test(test_two_lowest_masks),
        cmocka_unit_test(test_causal_alignment),
        cmocka_unit_test(test_window_counts_the_query),
        cmocka_unit_test(test_key_head_serves_its_group),
        cmocka_unit_test(test_huge_half_precision_scores),
        cmocka_unit_test(test_scores_far_from_zero),
        cmocka_unit_test(test_cap_comes_before_the_mask),
        cmocka_unit_test(test_sink_shares),
        cmocka_unit_test(test_sink_without_keys),
        cmocka_unit_test(test_sink_per_head),
        cmocka_unit_test(test_natural_log_and_merge),
        cmocka_unit_test(test_row_lengths),
        cmocka_unit_test(test_odd_widths),
        cmocka_unit_test(test_low_precision_sums),
        cmocka_unit_test(test_entropy_of_zero_weights),
        cmocka_unit_test(test_divergence_of_zero_weights),
        cmocka_unit_test(test_top_k_ties),
        cmocka_unit_test(test_appended_copy),
        cmocka_unit_test(test_batch_mates_and_threads),
    };
    return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL) == 0 ? 0 : 1;
}
