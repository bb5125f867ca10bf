// Lists and counts of a group of pieces: to the device, and back to whoever asked for the pass.
#include <cstring>

#include "kernels/cuda/queue.h"

namespace ats {

template <class T>
static cudaError_t download(T *host, const T *device, int64_t count, cudaStream_t stream)
{
    return cudaMemcpyAsync(host, device, static_cast<size_t>(count) * sizeof(T),
                           cudaMemcpyDeviceToHost, stream);
}

ats_device_status scan_group(ats_device *d, half *h, const pass_args &args, ats_device_error *error)
{
    const ats_device_problem &p = d->problem;
    const int64_t parts = scan_parts(h->count);
    scan_args scan = {};
    scan.pieces = static_cast<int32_t>(h->count);
    scan.z = h->out.z;
    if (h->pass->best != nullptr) {
        scan.limit = static_cast<int32_t>(p.best);
        scan.list_z = h->out.list_z;
        scan.list_place = h->out.list_place;
        const int64_t entries = 2 * parts * p.best * p.lanes;
        ATS_CUDA(launch_best(args, scan, d->shared_limit, h->stream));
        ATS_CUDA(download(h->host_out.list_z, scan.list_z, entries, h->stream));
        ATS_CUDA(download(h->host_out.list_place, scan.list_place, entries, h->stream));
    }
    if (h->pass->counts != nullptr) {
        const ats_device_counts *counts = h->pass->counts;
        const size_t bytes = static_cast<size_t>(counts->n * p.lanes) * sizeof(float);
        memcpy(h->host_in.above, counts->above, bytes);
        ATS_CUDA(cudaMemcpyAsync(h->in.above, h->host_in.above, bytes, cudaMemcpyHostToDevice,
                                 h->stream));
        scan.n_above = static_cast<int32_t>(counts->n);
        scan.above = h->in.above;
        scan.counts = h->out.counts;
        ATS_CUDA(launch_counts(args, scan, h->stream));
        ATS_CUDA(download(h->host_out.counts, scan.counts, parts * counts->n * p.lanes, h->stream));
    }
    return ATS_DEVICE_OK;
}

void scan_results(const ats_device *d, const half *h, int64_t count)
{
    const ats_device_problem &p = d->problem;
    const int64_t parts = scan_parts(count), first = h->pieces->first;
    const ats_device_best *best = h->pass->best;
    for (int64_t part = 0; best != nullptr && part < 2 * parts; part++) {
        const int64_t at = part * p.best * p.lanes;
        for (int64_t row = 0; row < p.rows; row++)
            best->offer(best->ctx, part >= parts, row, p.best, p.lanes,
                        h->host_out.list_z + at + row, h->host_out.list_place + at + row, first);
    }
    const ats_device_counts *counts = h->pass->counts;
    for (int64_t part = 0; counts != nullptr && part < parts; part++)
        for (int64_t i = 0; i < counts->n * p.lanes; i++)
            counts->count[i] += h->host_out.counts[part * counts->n * p.lanes + i];
}

} // namespace ats
