#include "h5/checksum.h"

#include "h5/grid.h"
#include "h5/heap.h"
#include "h5/internal.h"
#include "h5/zstd_filter.h"

uint32_t ats_h5_fletcher32(const uint8_t *bytes, size_t count)
{
    enum { BLOCK = 360 }; /* words that cannot overflow the second sum */
    uint32_t first = 0, second = 0;
    for (size_t words = count / 2; words > 0;) {
        const size_t now = words < BLOCK ? words : BLOCK;
        for (size_t i = 0; i < now; i++, bytes += 2) {
            first += (uint32_t)bytes[0] << 8 | bytes[1];
            second += first;
        }
        first = (first & 0xffff) + (first >> 16);
        second = (second & 0xffff) + (second >> 16);
        words -= now;
    }
    if (count % 2 != 0) {
        first += (uint32_t)bytes[0] << 8;
        second += first;
        first = (first & 0xffff) + (first >> 16);
        second = (second & 0xffff) + (second >> 16);
    }
    first = (first & 0xffff) + (first >> 16);
    second = (second & 0xffff) + (second >> 16);
    return second << 16 | first;
}

bool ats_h5_fletcher32_holds(const uint8_t *bytes, size_t count)
{
    if (count < ATS_H5_FLETCHER_SIZE) return false;
    const uint8_t *at = bytes + count - ATS_H5_FLETCHER_SIZE;
    const uint32_t sum = ats_h5_fletcher32(bytes, count - ATS_H5_FLETCHER_SIZE);
    const uint32_t stored =
        at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    return stored == sum;
}

/* The object header's version is 2 in files of format bounds V18 and later; only those have a
 * checksum, and a compact dataset's numbers lie in its header. */
static bool header_checksummed(const ats_h5_dataset *dataset)
{
    H5O_info_t info;
    return H5Oget_info2(dataset->id, &info, H5O_INFO_HDR) >= 0 && info.hdr.version >= 2;
}

static ats_code frames_checksummed(const ats_h5_dataset *dataset, const ats_h5_grid *grid,
                                   bool *out, ats_err *err)
{
    ats_h5_heaps bytes;
    ats_code rc = ats_h5_heaps_init(dataset->file, &bytes, err);
    if (rc != ATS_OK) return rc;
    *out = true;
    for (int64_t i = 0; i < grid->n_chunks && *out; i++) {
        int64_t origin[ATS_H5_MAX_RANK] = {0};
        uint8_t head[ATS_ZSTD_HEAD];
        unsigned skipped = 0;
        haddr_t address = HADDR_UNDEF;
        hsize_t size = 0;
        ats_h5_grid_origin(grid, i, origin);
        const ats_h5_dims at = ats_h5_to_dims(grid->rank, origin);
        if (H5Dget_chunk_info_by_coord(dataset->id, at.at, &skipped, &address, &size) < 0) {
            rc = ats_h5_error(err, ATS_E_INPUT, dataset->file, dataset->name,
                              "its chunk index cannot be read");
            goto out;
        }
        if (address == HADDR_UNDEF || size == 0) continue;
        rc = ats_h5_heaps_fetch(&bytes, (int64_t)address, sizeof head, head, err);
        if (rc != ATS_OK) {
            rc = ats_prepend(err, rc, "%s: %s", dataset->file->path, dataset->name);
            goto out;
        }
        *out = ats_zstd_checksummed(head, sizeof head);
    }
out:
    ats_h5_heaps_fini(&bytes);
    return rc;
}

ats_code ats_h5_checksummed(const ats_h5_dataset *dataset, bool *out, ats_err *err)
{
    ats_h5_grid grid;
    bool zstd = false;
    const hid_t creation = H5Dget_create_plist(dataset->id);
    const bool compact = creation >= 0 && H5Pget_layout(creation) == H5D_COMPACT;
    if (creation >= 0) H5Pclose(creation);
    *out = compact && header_checksummed(dataset);
    for (int i = 0; i < dataset->n_filters; i++) {
        if (dataset->filter[i] == ATS_H5_FLETCHER32) *out = true;
        if (dataset->filter[i] == ATS_H5_ZSTD && i + 1 == dataset->n_filters) zstd = true;
    }
    if (*out || !zstd || !dataset->chunked) return ATS_OK;
    const ats_code rc = ats_h5_grid_make(dataset, NULL, NULL, &grid, err);
    return rc != ATS_OK ? rc : frames_checksummed(dataset, &grid, out, err);
}
