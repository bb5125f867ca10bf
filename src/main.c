#include <stdlib.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "cli/command.h"

/* Every layer asks for the same large blocks again: pages that stay need not be cleared anew. */
static void keep_pages(void)
{
#if defined(__GLIBC__)
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most there is */
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

int main(int argc, char **argv)
{
    keep_pages();
    exit(ats_cli_main(argc, argv));
}
