/* gpu_bench [--quick | --kernels | --probe]: the GPU's rows of `bench` as a Markdown table on
 * stdout, those of kernels alone, or only what the device is. Exit status 4 and the reason where
 * there is none. For machines that have no more than kernels and a compiler. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/gpu.h"

static void print_row(const ats_bench_row *row)
{
    printf("| %s | %.4g %s | ", row->what, row->value, row->unit);
    if (isnan(row->must))
        printf("| ");
    else
        printf("%g / %g | %s ", row->must, row->goal, ats_bench_verdict(row));
    printf("| %s |\n", row->note);
}

int main(int argc, char **argv)
{
    const char *option = argc > 1 ? argv[1] : "";
    ats_err err = {.code = ATS_OK};
    const ats_backend *cuda = NULL;
    ats_bench bench;
    ats_bench_init(&bench, strcmp(option, "--quick") == 0);
    ats_code rc = ats_backend_find("cuda", &cuda, &err);
    const bool found = rc == ATS_OK;
    if (found) printf("device: %s\n\n", cuda->detail());
    if (found && strcmp(option, "--probe") != 0)
        rc = ats_bench_gpu(&bench, strcmp(option, "--kernels") == 0, &err);
    if (bench.n_rows > 0)
        printf("| what | value | must / goal | verdict | how |\n|---|---|---|---|---|\n");
    for (int64_t i = 0; i < bench.n_rows; i++) print_row(&bench.rows[i]);
    if (rc != ATS_OK) fprintf(stderr, "gpu_bench: %s\n", err.text);
    ats_bench_fini(&bench);
    return ats_code_exit(rc);
}
