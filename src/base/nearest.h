/* Nearest known word to a misspelt one, for "did you mean" hints.
 * Pure function; optimal string alignment distance (edits and swaps of neighbours). */
#ifndef ATS_BASE_NEAREST_H
#define ATS_BASE_NEAREST_H

/* The entry of list (NULL-terminated) closest to word, or NULL when none is close enough to be
 * meant (more than half of the longer word differs). Ties go to the earlier entry. */
const char *ats_nearest(const char *word, const char *const *list);

#endif
