#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { LONGEST = 63 };

static int lower(char c) { return tolower((unsigned char)c); }

static int min3(int a, int b, int c)
{
    const int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Both words at most LONGEST bytes. Case and '-' against '_' count as no difference of letters. */
static int distance(const char *a, int na, const char *b, int nb)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= nb; j++) above[j] = j;
    for (int i = 1; i <= na; i++) {
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]) ||
                              (strchr("-_", a[i - 1]) != NULL && strchr("-_", b[j - 1]) != NULL);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + !same);
            const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                                 lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
        }
        int *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[nb];
}

const char *ats_nearest(const char *word, const char *const *list)
{
    const size_t length = strlen(word);
    if (length == 0 || length > LONGEST) return NULL;
    const char *best = NULL;
    int least = 0;
    for (; *list != NULL; list++) {
        const size_t n = strlen(*list);
        if (n == 0 || n > LONGEST) continue;
        const int limit = (int)((n > length ? n : length) + 1) / 2;
        const int d = distance(word, (int)length, *list, (int)n);
        /* A wrong first letter is rare: it weighs more than one edit. */
        const int score = 2 * d + (lower(word[0]) != lower((*list)[0]) ? 3 : 0);
        if (d > limit || (best != NULL && score >= least)) continue;
        best = *list;
        least = score;
    }
    return best;
}
