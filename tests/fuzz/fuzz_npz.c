/* npz: the input is a list of members (kind, bytes of name and of body, name, body), from which an
 * archive with true checksums and a true directory is made; what follows an empty member is pairs
 * of place (two bytes) and value that are written over it. */
#include <string.h>
#include <zlib.h>

#include "fuzz.h"
#include "tensors.h"

enum { MEMBERS = 8, LOCAL = 30, ENTRY = 46, END = 22, ROOM = 1 << 15 };

typedef struct archive {
    uint8_t *file, entries[MEMBERS][ENTRY + 256];
    size_t size, entry_size[MEMBERS];
    int count;
} archive;

static void put(uint8_t *at, size_t value, int width)
{
    for (int i = 0; i < width; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static size_t deflated(const uint8_t *body, size_t size, uint8_t *out, size_t room)
{
    z_stream z = {.next_in = NULL};
    if (deflateInit2(&z, 1, Z_DEFLATED, -9, 1, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    z.next_in = (uint8_t *)(uintptr_t)body;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)room;
    deflate(&z, Z_FINISH);
    const size_t bytes = z.total_out;
    deflateEnd(&z);
    return bytes;
}

/* kind: 1 deflated, 2 body as it is and no npy. */
static void add(archive *to, unsigned kind, const uint8_t *name, size_t name_size,
                const uint8_t *data, size_t size)
{
    static uint8_t body[1 << 17];
    uint8_t *local = to->file + to->size, *entry = to->entries[to->count];
    size_t bytes = size;
    if ((kind & 2) != 0)
        memcpy(body, data, size);
    else
        bytes = ats_fuzz_npy(data, size, body);
    if (bytes > ROOM / MEMBERS) bytes = ROOM / MEMBERS;
    uint8_t *stored = local + LOCAL + name_size;
    size_t stored_size = bytes;
    if ((kind & 1) != 0)
        stored_size = deflated(body, bytes, stored, ROOM / MEMBERS + 64);
    else
        memcpy(stored, body, bytes);
    memset(local, 0, LOCAL);
    memset(entry, 0, ENTRY);
    memcpy(local, "PK\3\4\x14\0", 6);
    memcpy(entry, "PK\1\2\x14\0\x14\0", 8);
    put(local + 8, (kind & 1) != 0 ? 8 : 0, 2);
    put(local + 14, crc32(0, body, (uInt)bytes), 4);
    put(local + 18, stored_size, 4);
    put(local + 22, bytes, 4);
    put(local + 26, name_size, 2);
    memcpy(entry + 10, local + 8, 20);
    put(entry + 42, to->size, 4);
    memcpy(local + LOCAL, name, name_size);
    memcpy(entry + ENTRY, name, name_size);
    to->entry_size[to->count++] = ENTRY + name_size;
    to->size += LOCAL + name_size + stored_size;
}

static void finish(archive *to)
{
    const size_t start = to->size;
    for (int i = 0; i < to->count; i++) {
        memcpy(to->file + to->size, to->entries[i], to->entry_size[i]);
        to->size += to->entry_size[i];
    }
    uint8_t *end = to->file + to->size;
    memset(end, 0, END);
    memcpy(end, "PK\5\6", 4);
    put(end + 8, (size_t)to->count, 2);
    put(end + 10, (size_t)to->count, 2);
    put(end + 12, to->size - start, 4);
    put(end + 16, start, 4);
    to->size += END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[ATS_FUZZ_TENSOR_FILE];
    static archive to;
    to = (archive){.file = file};
    if (size > 1 << 12) return -1;
    while (size >= 3 && data[1] > 0 && to.count < MEMBERS) {
        size_t name = data[1], body = data[2];
        if (name > size - 3) name = size - 3;
        if (body > size - 3 - name) body = size - 3 - name;
        add(&to, data[0], data + 3, name, data + 3 + name, body);
        data += 3 + name + body;
        size -= 3 + name + body;
    }
    finish(&to);
    for (size_t at = 3; at + 3 <= size; at += 3)
        file[(data[at] | (size_t)data[at + 1] << 8) % to.size] = data[at + 2];
    ats_fuzz_tensors(file, to.size);
    return 0;
}
