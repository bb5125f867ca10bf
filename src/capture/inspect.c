#include "capture/inspect.h"

#include <errno.h>
#include <string.h>

#include "capture/describe.h"
#include "capture/format.h"

enum { EXCERPT = 48 /* bytes of token text shown for a span */ };

static void print_text(FILE *out, const char *name, const char *text)
{
    if (text != NULL && text[0] != '\0') fprintf(out, "%-16s%s\n", name, text);
}

static void print_layer(FILE *out, const ats_layer *layer)
{
    const ats_contract *c = &layer->contract;
    fprintf(out, "  %5lld  %3lld/%-3lld  %4lld/%-4lld  %-10.6g  ", (long long)layer->index,
            (long long)layer->n_q_heads, (long long)layer->n_kv_heads, (long long)layer->d_qk,
            (long long)layer->d_v, c->scale);
    fprintf(out, "%-6s  %-8s  ", c->causal ? "causal" : "both",
            layer->positions == ATS_POSITIONS_ROPE && c->rope.layout != ATS_ROPE_NONE
                ? ats_rope_layout_word(c->rope.layout)
                : ats_positions_word(layer->positions));
    if (c->window > 0) fprintf(out, " window %lld", (long long)c->window);
    if (c->chunk > 0) fprintf(out, " chunk %lld", (long long)c->chunk);
    if (c->softcap > 0) fprintf(out, " softcap %g", c->softcap);
    if (layer->rope_dynamic) fprintf(out, " dynamic");
    if (layer->sink != NULL) fprintf(out, " sink");
    if (layer->w_o != NULL) fprintf(out, " w_o[%lld]", (long long)layer->d_model);
    if (c->rope.pairs > 0) fprintf(out, " rotary %lld", (long long)(2 * c->rope.pairs));
    if (layer->max_position > 0) fprintf(out, " max %lld", (long long)layer->max_position);
    fputc('\n', out);
}

static void print_layers(FILE *out, const ats_capture *capture)
{
    fprintf(out, "\nlayers (%lld)\n", (long long)capture->n_layers);
    fprintf(out, "  layer  q/kv     d_qk/d_v   scale       mask    positions  other\n");
    for (int64_t i = 0; i < capture->n_layers; i++) print_layer(out, &capture->layers[i]);
}

static void print_span(FILE *out, const ats_sample *sample, const ats_span *span)
{
    char excerpt[EXCERPT + 8];
    fprintf(out, "    %-14s %-12s [%lld, %lld)", span->name, span->role, (long long)span->start,
            (long long)span->stop);
    if (ats_span_excerpt(sample, span, EXCERPT, excerpt, sizeof excerpt))
        fprintf(out, "  \"%s\"", excerpt);
    fputc('\n', out);
}

static void print_probes(FILE *out, const ats_sample *sample)
{
    fprintf(out, "    probes:");
    for (int64_t i = 0; i < sample->n_probes; i++) {
        const ats_probe *probe = &sample->probes[i];
        fprintf(out, "%s %lld@%lld%s%s", i > 0 ? "," : "", (long long)probe->index,
                (long long)probe->position, probe->role[0] != '\0' ? " " : "", probe->role);
    }
    fputc('\n', out);
}

static ats_code print_sample(FILE *out, const ats_capture *capture, int64_t index, ats_err *err)
{
    const ats_sample *sample = &capture->samples[index];
    fprintf(out, "  %s: %lld keys, %lld probes, cluster %s", sample->id, (long long)sample->n_keys,
            (long long)sample->n_probes, sample->cluster);
    if (sample->variant_of != NULL) fprintf(out, ", variant of %s", sample->variant_of);
    if (sample->segment != NULL) fprintf(out, ", segments");
    fputc('\n', out);
    for (int64_t i = 0; i < sample->n_spans; i++) print_span(out, sample, &sample->spans[i]);
    print_probes(out, sample);
    for (int64_t i = 0; i < capture->n_layers; i++) {
        ats_storage storage;
        const ats_code rc = ats_capture_storage(capture, index, i, &storage, err);
        if (rc != ATS_OK) return rc;
        fprintf(out, "    layer %lld: %s, %.1f MB, %.1f MB stored",
                (long long)capture->layers[i].index, ats_dtype_name(storage.k_dtype),
                (double)storage.bytes / 1e6, (double)storage.stored / 1e6);
        if (storage.keep) fprintf(out, ", keep");
        if (storage.bias) fprintf(out, ", bias");
        if (storage.out) fprintf(out, ", out");
        if (storage.lse) fprintf(out, ", lse");
        fputc('\n', out);
    }
    return ATS_OK;
}

static ats_code print_tree(const ats_capture *capture, FILE *out, ats_err *err)
{
    print_text(out, "capture", capture->path);
    print_text(out, "model", capture->model_id);
    print_text(out, "checkpoint", capture->checkpoint);
    print_text(out, "weights hash", capture->weights_hash);
    print_text(out, "tokenizer hash", capture->tokenizer_hash);
    print_text(out, "created", capture->created);
    print_text(out, "producer", capture->producer);
    print_text(out, "file hash", capture->hash);
    print_layers(out, capture);
    if (capture->n_readouts > 0) {
        fprintf(out, "\nreadouts (%lld), d_model %lld\n", (long long)capture->n_readouts,
                (long long)capture->readout_dim);
        for (int64_t i = 0; i < capture->n_readouts; i++)
            fprintf(out, "  %s\n", capture->readout_names[i]);
    }
    fprintf(out, "\nsamples (%lld)\n", (long long)capture->n_samples);
    for (int64_t i = 0; i < capture->n_samples; i++) {
        const ats_code rc = print_sample(out, capture, i, err);
        if (rc != ATS_OK) return rc;
    }
    return ATS_OK;
}

ats_code ats_capture_inspect(const ats_capture *capture, FILE *out, bool json, ats_err *err)
{
    const ats_code rc = json ? ats_capture_json(capture, out, err) : print_tree(capture, out, err);
    if (rc != ATS_OK) return rc;
    if (fflush(out) == 0 && !ferror(out)) return ATS_OK;
    return ats_fail(err, ATS_E_IO, "%s: what it holds cannot be printed: %s", capture->path,
                    strerror(errno));
}
