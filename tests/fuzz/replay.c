/* Runs every file of the folders named on the command line through the target. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static int64_t replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    static uint8_t bytes[1 << 20];
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const int64_t refused = ats_fuzz_refusals();
    LLVMFuzzerTestOneInput(bytes, size);
    const char *slash = strrchr(path, '/');
    if (strncmp(slash + 1, "valid", 5) == 0 && ats_fuzz_refusals() != refused) {
        fprintf(stderr, "%s: is refused, and is valid; ATS_FUZZ_VERBOSE=1 says why\n", path);
        exit(1);
    }
    return 1;
}

static int64_t replay_folder(const char *folder)
{
    int64_t n = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        perror(folder);
        exit(1);
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        n += replay_file(path);
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int64_t n = 0;
    for (int i = 1; i < argc; i++) n += replay_folder(argv[i]);
    printf("%lld inputs replayed\n", (long long)n);
    return n > 0 ? 0 : 1;
}
