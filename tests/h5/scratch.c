#include "h5/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

static char folder[64];

int scratch_setup(void **state)
{
    (void)state;
    strcpy(folder, "scratch-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

const char *scratch_path(const char *name)
{
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

int scratch_teardown(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    if (dir == NULL) return -1;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.') unlink(scratch_path(entry->d_name));
    closedir(dir);
    return rmdir(folder);
}

uint8_t *scratch_read(const char *path, int64_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc((size_t)*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)*size, file), *size);
    fclose(file);
    return bytes;
}

void scratch_write(const char *path, const void *bytes, int64_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)size, file), size);
    assert_int_equal(fclose(file), 0);
}

bool scratch_exists(const char *path) { return access(path, F_OK) == 0; }
