#include "capture/stream.h"

#include <stdlib.h>

#include "base/parallel.h"

static const int64_t page = 4096; /* v begins on one */

/* Rows that are read together: whole chunks, one for every thread at least where chunks are of the
 * size that this program writes. */
static int64_t rows_at_once(const ats_h5_dataset *dataset)
{
    const int64_t row = dataset->extent[2] * (int64_t)dataset->size;
    const int64_t chunk = dataset->chunked ? dataset->chunk[1] : 1;
    const int64_t most = (int64_t)(ats_threads() + 1) << 20;
    const int64_t chunks = most / (row * chunk > 0 ? row * chunk : 1);
    return chunk * (chunks > 1 ? chunks : 1);
}

int64_t ats_stream_room(const ats_h5_dataset *dataset)
{
    return rows_at_once(dataset) * dataset->extent[2] * (int64_t)dataset->size;
}

static int64_t bytes_of(const ats_stream_source *source)
{
    const int64_t *count = source->job.count;
    return count[0] * count[1] * count[2] * (int64_t)source->element;
}

/* One tensor to `offset` of the file. buffer: ats_stream_room bytes. */
static ats_code write_tensor(const ats_stream_source *source, ats_scratch *scratch, int64_t offset,
                             void *buffer, ats_err *err)
{
    const int64_t *start = source->job.start, *count = source->job.count;
    const int64_t rows = rows_at_once(source->job.dataset);
    const int64_t row = count[2] * (int64_t)source->element;
    bool suspect = false;
    for (int64_t head = 0; head < count[0]; head++)
        for (int64_t first = 0; first < count[1]; first += rows) {
            const int64_t left = count[1] - first, n = left < rows ? left : rows;
            const int64_t from[3] = {start[0] + head, first, 0}, box[3] = {1, n, count[2]};
            ats_h5_job job = source->job;
            bool some = false;
            job.start = from;
            job.count = box;
            job.out = buffer;
            job.suspect = &some;
            ats_code rc = ats_h5_read_many(&job, 1, err);
            if (rc == ATS_OK)
                rc = ats_scratch_write(scratch, offset + (head * count[1] + first) * row, buffer,
                                       n * row, err);
            if (rc != ATS_OK) return rc;
            suspect |= some;
        }
    *source->job.suspect = suspect;
    return ATS_OK;
}

ats_code ats_stream_read(const ats_stream *stream, const ats_stream_source sources[2],
                         ats_attention *a, ats_err *err)
{
    const int64_t k_bytes = (bytes_of(&sources[0]) + page - 1) / page * page;
    const int64_t bytes = k_bytes + bytes_of(&sources[1]);
    const int64_t k_room = ats_stream_room(sources[0].job.dataset);
    const int64_t v_room = ats_stream_room(sources[1].job.dataset);
    const void *map = NULL;
    ats_scratch *scratch = NULL;
    void *buffer = malloc((size_t)(k_room > v_room ? k_room : v_room));
    ats_code rc;
    if (buffer == NULL) ATS_TRY(ats_fail(err, ATS_E_MEMORY, "out of memory"));
    ATS_TRY(ats_scratch_new(stream->folder, bytes, stream->resident, ats_threads(), &scratch, err));
    ATS_TRY(write_tensor(&sources[0], scratch, 0, buffer, err));
    ATS_TRY(write_tensor(&sources[1], scratch, k_bytes, buffer, err));
    ATS_TRY(ats_scratch_map(scratch, &map, err));
    a->k = (void *)(uintptr_t)map;
    a->v = (char *)a->k + k_bytes;
    a->scratch = scratch;
    a->bytes += (size_t)stream->resident;
    scratch = NULL;
out:
    ats_scratch_free(scratch);
    free(buffer);
    return rc;
}
