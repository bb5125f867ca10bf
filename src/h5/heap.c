#include "h5/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "h5/internal.h"

/* Layout (HDF5 file format, "Disk Format: Level 1E - Global Heap"): "GCOL", version 1, 3 zero
 * bytes, size u64; then objects of a 16-byte header (index u16, references u16, 4 zero bytes, size
 * u64) and data padded to 8 bytes. Index 0 is free space, whose size includes its header. */
enum { HEAP_HEAD = 16, OBJECT_HEAD = 16 };
static const uint8_t signature[8] = {'G', 'C', 'O', 'L', 1, 0, 0, 0};

static uint64_t little(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

ats_code ats_h5_heaps_init(const ats_h5_file *file, ats_h5_heaps *out, ats_err *err)
{
    void *handle = NULL;
    hsize_t base = 0;
    size_t offset_size = 0, length_size = 0;
    const hid_t creation = H5Fget_create_plist(file->id);
    const bool known = creation >= 0 && H5Pget_userblock(creation, &base) >= 0 &&
                       H5Pget_sizes(creation, &offset_size, &length_size) >= 0 &&
                       H5Fget_vfd_handle(file->id, H5P_DEFAULT, &handle) >= 0 && handle != NULL;
    if (creation >= 0) H5Pclose(creation);
    if (!known) return ats_h5_error(err, ATS_E_INPUT, file, NULL, "its layout cannot be read");
    if (offset_size != 8 || length_size != 8)
        return ats_h5_fail(err, ATS_E_UNSUPPORTED, file, NULL,
                           "has offsets of %zu and lengths of %zu bytes; 8 and 8 are read",
                           offset_size, length_size);
    *out = (ats_h5_heaps){.file = file,
                          .descriptor = *(const int *)handle,
                          .base = (int64_t)base,
                          .budget = 4 * file->size + ((int64_t)64 << 20)};
    return ATS_OK;
}

void ats_h5_heaps_fini(ats_h5_heaps *heaps)
{
    for (size_t i = 0; i < sizeof heaps->cached / sizeof *heaps->cached; i++) {
        free(heaps->cached[i].bytes);
        free(heaps->cached[i].object);
    }
    *heaps = (ats_h5_heaps){.file = NULL};
}

ats_code ats_h5_heaps_fetch(const ats_h5_heaps *heaps, int64_t offset, int64_t count, void *out,
                            ats_err *err)
{
    uint8_t *to = out;
    if (offset < 0 || count < 0 || offset > heaps->file->size || count > heaps->file->size - offset)
        return ats_fail(err, ATS_E_INPUT, "%lld bytes at %lld lie outside the file; it is damaged",
                        (long long)count, (long long)offset);
    while (count > 0) {
        const ssize_t got = pread(heaps->descriptor, to, (size_t)count, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return ats_fail(err, ATS_E_IO, "%lld bytes at %lld cannot be read: %s",
                            (long long)count, (long long)offset,
                            got < 0 ? strerror(errno) : "the file has become shorter");
        to += got;
        offset += got;
        count -= got;
    }
    return ATS_OK;
}

/* Next object of a heap: its index, place and size. False: the heap is damaged there. */
static bool next_object(const uint8_t *bytes, int64_t size, int64_t *at, int64_t *index,
                        int64_t *length)
{
    const int64_t left = size - *at;
    if (left < OBJECT_HEAD) {
        *index = 0;
        *length = left;
        *at = size;
        return true;
    }
    const uint64_t claimed = little(bytes + *at + 8, 8);
    *index = (int64_t)little(bytes + *at, 2);
    if (claimed > (uint64_t)left) return false;
    *length = (int64_t)claimed;
    const int64_t need = *index == 0 ? *length : OBJECT_HEAD + ((*length + 7) & ~(int64_t)7);
    if (need < OBJECT_HEAD || need > left) return false;
    *at += need;
    return true;
}

static bool heap_is_sound(const uint8_t *bytes, int64_t size)
{
    int64_t at = HEAP_HEAD, index, length;
    while (at < size)
        if (!next_object(bytes, size, &at, &index, &length)) return false;
    return true;
}

/* Fetches and checks the heap at a file offset. */
static ats_code heap_fetch(const ats_h5_heaps *heaps, int64_t offset, uint8_t **out, int64_t *size,
                           ats_err *err)
{
    uint8_t head[HEAP_HEAD];
    void *bytes = NULL;
    ats_code rc;
    ATS_TRY(ats_h5_heaps_fetch(heaps, offset, HEAP_HEAD, head, err));
    const uint64_t claimed = little(head + 8, 8);
    if (memcmp(head, signature, sizeof signature) != 0 || claimed < HEAP_HEAD ||
        claimed > (uint64_t)(heaps->file->size - offset))
        return ats_fail(err, ATS_E_INPUT,
                        "the text heap at byte %lld has no valid head; the file is damaged",
                        (long long)offset);
    ATS_TRY(ats_h5_malloc((size_t)claimed, &bytes, err));
    ATS_TRY(ats_h5_heaps_fetch(heaps, offset, (int64_t)claimed, bytes, err));
    if (!heap_is_sound(bytes, (int64_t)claimed)) {
        rc = ats_fail(err, ATS_E_INPUT,
                      "the text heap at byte %lld holds an object that does not fit into it; the "
                      "file is damaged",
                      (long long)offset);
        goto out;
    }
    *out = bytes;
    *size = (int64_t)claimed;
    return ATS_OK;
out:
    free(bytes);
    return rc;
}

static ats_code check_at(const ats_h5_heaps *heaps, int64_t offset, ats_err *err)
{
    uint8_t *bytes = NULL;
    int64_t size;
    const ats_code rc = heap_fetch(heaps, offset, &bytes, &size, err);
    free(bytes);
    return rc == ATS_OK ? rc : ats_prepend(err, rc, "%s", heaps->file->path);
}

/* Offset of the first signature at or after `from`; -1: none. Heaps lie at multiples of 8. */
static int64_t find_signature(const uint8_t *block, int64_t size, int64_t from)
{
    uint64_t want;
    memcpy(&want, signature, sizeof want);
    for (int64_t i = from; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, block + i, sizeof word);
        if (word == want) return i;
    }
    return -1;
}

ats_code ats_h5_heaps_check(const ats_h5_file *file, ats_err *err)
{
    enum { BLOCK = 1 << 20 };
    ats_h5_heaps heaps;
    void *block = NULL;
    ats_code rc = ats_h5_heaps_init(file, &heaps, err);
    if (rc != ATS_OK) return rc;
    ATS_TRY(ats_h5_malloc(file->size < BLOCK ? (size_t)file->size : BLOCK, &block, err));
    for (int64_t offset = 0; offset < file->size; offset += BLOCK) {
        const int64_t left = file->size - offset, count = left < BLOCK ? left : BLOCK;
        rc = ats_h5_heaps_fetch(&heaps, offset, count, block, err);
        if (rc != ATS_OK) {
            rc = ats_prepend(err, rc, "%s", file->path);
            goto out;
        }
        for (int64_t at = 0; (at = find_signature(block, count, at)) >= 0; at += 8)
            ATS_TRY(check_at(&heaps, offset + at, err));
    }
out:
    free(block);
    ats_h5_heaps_fini(&heaps);
    return rc;
}

static void index_objects(ats_h5_heap *heap)
{
    int64_t at = HEAP_HEAD;
    for (int64_t i = 0; i < heap->n_objects; i++) heap->object[2 * i + 1] = -1;
    while (at < heap->size) {
        int64_t index, length;
        const int64_t start = at;
        if (!next_object(heap->bytes, heap->size, &at, &index, &length)) return;
        if (index == 0) continue;
        heap->object[2 * index] = start + OBJECT_HEAD;
        heap->object[2 * index + 1] = length;
    }
}

static int64_t largest_index(const uint8_t *bytes, int64_t size)
{
    int64_t at = HEAP_HEAD, index, length, largest = 0;
    while (at < size && next_object(bytes, size, &at, &index, &length))
        if (index > largest) largest = index;
    return largest;
}

/* Loads a heap into the slot that was used longest ago. */
static ats_code heap_load(ats_h5_heaps *heaps, int64_t address, ats_h5_heap **out, ats_err *err)
{
    ats_h5_heap *slot = &heaps->cached[0];
    void *objects = NULL;
    int64_t offset;
    ats_code rc;
    for (size_t i = 1; i < sizeof heaps->cached / sizeof *heaps->cached; i++)
        if (heaps->cached[i].last_use < slot->last_use) slot = &heaps->cached[i];
    free(slot->bytes);
    free(slot->object);
    *slot = (ats_h5_heap){.address = address};
    if (__builtin_add_overflow(address, heaps->base, &offset)) offset = -1;
    ATS_TRY(heap_fetch(heaps, offset, &slot->bytes, &slot->size, err));
    heaps->budget -= slot->size;
    if (heaps->budget < 0)
        return ats_fail(err, ATS_E_INPUT,
                        "its texts jump between more heaps than the file can hold; the file is "
                        "damaged");
    slot->n_objects = largest_index(slot->bytes, slot->size) + 1;
    ATS_TRY(ats_h5_malloc((size_t)slot->n_objects * 2 * sizeof *slot->object, &objects, err));
    slot->object = objects;
    index_objects(slot);
    *out = slot;
out:
    return rc;
}

static ats_code heap_at(ats_h5_heaps *heaps, int64_t address, ats_h5_heap **out, ats_err *err)
{
    ats_code rc = ATS_OK;
    ats_h5_heap *found = NULL;
    for (size_t i = 0; i < sizeof heaps->cached / sizeof *heaps->cached && found == NULL; i++)
        if (heaps->cached[i].object != NULL && heaps->cached[i].address == address)
            found = &heaps->cached[i];
    if (found == NULL) rc = heap_load(heaps, address, &found, err);
    if (rc != ATS_OK) return rc;
    found->last_use = ++heaps->clock;
    *out = found;
    return ATS_OK;
}

ats_code ats_h5_heaps_text(ats_h5_heaps *heaps, const uint8_t *reference, const char **text,
                           int64_t *length, ats_err *err)
{
    const int64_t count = (int64_t)little(reference, 4), index = (int64_t)little(reference + 12, 4);
    const uint64_t address = little(reference + 4, 8);
    ats_h5_heap *heap = NULL;
    if (count == 0 || address == 0) {
        *text = "";
        *length = 0;
        return ATS_OK;
    }
    if (address > (uint64_t)heaps->file->size)
        return ats_fail(err, ATS_E_INPUT,
                        "a text lies at byte %llu, outside the file; it is damaged",
                        (unsigned long long)address);
    const ats_code rc = heap_at(heaps, (int64_t)address, &heap, err);
    if (rc != ATS_OK) return rc;
    if (index >= heap->n_objects || heap->object[2 * index + 1] < count)
        return ats_fail(err, ATS_E_INPUT,
                        "text object %lld of the heap at byte %llu is not there or too short; the "
                        "file is damaged",
                        (long long)index, (unsigned long long)address);
    *text = (const char *)heap->bytes + heap->object[2 * index];
    *length = count;
    return ATS_OK;
}

/* Stored strings as the opaque bytes of their references: nothing is looked up. */
static herr_t keep_reference(hid_t from, hid_t to, H5T_cdata_t *conversion, size_t count,
                             size_t stride, size_t background_stride, void *buffer,
                             void *background, hid_t transfer)
{
    (void)from, (void)count, (void)stride, (void)background_stride;
    (void)buffer, (void)background, (void)transfer;
    conversion->need_bkg = H5T_BKG_NO;
    return conversion->command == H5T_CONV_CONV && H5Tget_size(to) != ATS_H5_REFERENCE ? -1 : 0;
}

hid_t ats_h5_reference_type(void)
{
    H5T_cdata_t *conversion = NULL;
    const hid_t text = ats_h5_text_type(), type = H5Tcreate(H5T_OPAQUE, ATS_H5_REFERENCE);
    bool good = text >= 0 && type >= 0 && H5Tset_tag(type, "place of a text in the file") >= 0;
    if (good && H5Tfind(text, type, &conversion) == NULL)
        good = H5Tregister(H5T_PERS_SOFT, "text reference", text, type, keep_reference) >= 0;
    if (text >= 0) H5Tclose(text);
    if (good) return type;
    if (type >= 0) H5Tclose(type);
    return -1;
}
