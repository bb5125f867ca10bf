/* write_result PATH zstd|deflate|none probe|head: the small result of tests/report. */
#include <stdio.h>
#include <string.h>

#include "report/sample_result.h"

int main(int argc, char **argv)
{
    ats_err err = {.code = ATS_OK};
    if (argc != 4) return 3;
    const sample_result how = {.compression = argv[2], .detail_head = strcmp(argv[3], "head") == 0};
    if (sample_result_write(argv[1], &how, &err) == ATS_OK) return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}
