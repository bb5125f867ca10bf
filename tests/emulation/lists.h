/* Lists of the best keys and counts of heavier ones, as the GPU module makes them: bit by bit what
 * sorting the logits that it hands out gives. */
#ifndef ATS_TESTS_EMULATION_LISTS_H
#define ATS_TESTS_EMULATION_LISTS_H

void test_lists(void **state);

#endif
