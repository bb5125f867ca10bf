#include "cmocka.h"

jmp_buf bare_end;

int bare_run(const char *group, const struct CMUnitTest *tests, size_t count)
{
    volatile int failed = 0; /* both live across longjmp */
    for (volatile size_t i = 0; i < count; i++) {
        void *state = NULL;
        const int how = setjmp(bare_end);
        if (how == 0) {
            tests[i].run(&state);
            printf("[       OK ] %s\n", tests[i].name);
        } else if (how == BARE_SKIPPED) {
            printf("[  SKIPPED ] %s\n", tests[i].name);
        } else {
            printf("[  FAILED  ] %s\n", tests[i].name);
            failed++;
        }
        fflush(stdout);
    }
    printf("%s: %zu passed, %d failed\n", group, count - (size_t)failed, failed);
    return failed;
}
