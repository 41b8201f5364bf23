#include "storage/dataset_stream.h"

#include "base/mem.h"

rfa_status rfa_dataset_stream_begin(
    rfa_dataset_stream *stream, hid_t group, int values, int64_t examples, int64_t tokens)
{
    rfa_dataset_stream *s = stream;
    const hsize_t size = (hsize_t)tokens;
    const hid_t type = values <= 256 ? H5T_STD_U8LE : H5T_STD_U16LE;
    char name[16];
    s->examples = examples;
    s->size = tokens;
    s->written = 0;
    s->buffered = 0;
    if (!s->buffer) {
        RFA_TRY(rfa_alloc(&s->buffer, RFA_STREAM_BUFFER, sizeof *s->buffer, "data set buffer"));
    }
    RFA_TRY(rfa_alloc(&s->offsets, examples + 1, sizeof *s->offsets, "data set offsets"));
    RFA_TRY(rfa_alloc(&s->lengths, examples, sizeof *s->lengths, "data set lengths"));
    snprintf(name, sizeof name, "tokens%s", s->suffix);
    hid_t space = H5Screate_simple(1, &size, NULL);
    if (space >= 0) {
        s->tokens = H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    }
    rfa_h5_close(&space);
    if (s->tokens < 0) {
        return rfa_h5_fail(RFA_ERR_IO, s->path, "dataset '%s/%s' can't be created", s->split, name);
    }
    if (s->first_id > 0) {
        RFA_TRY(rfa_h5_write_int(s->tokens, s->path, "first_id", s->first_id));
    }
    RFA_TRY(rfa_h5_write_text(s->tokens, s->path, "units",
                              s->first_id > 0 ? "id - first_id (id: index in /vocabulary)"
                                              : "id (index in /vocabulary)"));
    return rfa_h5_write_text(s->tokens, s->path, "long_name",
                             s->suffix[0]
                                 ? "token ids of the second documents, one after the other"
                                 : "token ids of all examples, one example after the other");
}

rfa_status rfa_dataset_stream_flush(rfa_dataset_stream *stream)
{
    const rfa_dataset_stream *s = stream;
    if (s->buffered == 0) {
        return RFA_OK;
    }
    const hsize_t begin = (hsize_t)s->written, count = (hsize_t)s->buffered;
    hid_t memory = H5Screate_simple(1, &count, NULL), file = H5Dget_space(s->tokens);
    rfa_status status = RFA_OK;
    if (memory < 0 || file < 0 ||
        H5Sselect_hyperslab(file, H5S_SELECT_SET, &begin, NULL, &count, NULL) < 0 ||
        H5Dwrite(s->tokens, H5T_NATIVE_UINT16, memory, file, H5P_DEFAULT, s->buffer) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, s->path, "dataset '%s/tokens%s' can't be written",
                             s->split, s->suffix);
    }
    rfa_h5_close(&file);
    rfa_h5_close(&memory);
    stream->written += stream->buffered;
    stream->buffered = 0;
    return status;
}

rfa_status
rfa_dataset_stream_add(rfa_dataset_stream *stream, int64_t n, const uint16_t *ids, ptrdiff_t length)
{
    for (ptrdiff_t i = 0; i < length; i++) {
        if (stream->buffered == RFA_STREAM_BUFFER) {
            RFA_TRY(rfa_dataset_stream_flush(stream));
        }
        stream->buffer[stream->buffered++] = (uint16_t)(ids[i] - stream->first_id);
    }
    stream->lengths[n] = (int32_t)length;
    stream->offsets[n + 1] = stream->offsets[n] + length;
    return RFA_OK;
}

void rfa_dataset_stream_free(rfa_dataset_stream *stream)
{
    rfa_h5_close(&stream->tokens);
    rfa_free(stream->offsets);
    rfa_free(stream->lengths);
    stream->offsets = NULL;
    stream->lengths = NULL;
}
