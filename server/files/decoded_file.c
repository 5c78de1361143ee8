/* Decodes components for commands. */
#include "files/decoded_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "zt/decode.h"
#include "zt/slice.h"

#define CHUNK_BYTES ((size_t)256 << 10)

/* The file is on a disk if possible, otherwise in memory that can be swapped out. */
static int open_unnamed(void)
{
    const int file = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC | O_EXCL, 0600);

    return file >= 0 ? file : memfd_create("decoded", MFD_CLOEXEC);
}

static enum zt_status write_whole(int file, const uint8_t *bytes, size_t length,
                                  struct zt_error *error)
{
    while (length > 0) {
        const ssize_t wrote = write(file, bytes, length);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "cannot keep decoded bytes: %s",
                           strerrordesc_np(errno));
        bytes += wrote;
        length -= (size_t)wrote;
    }
    return ZT_OK;
}

static enum zt_status decode_into(int file, const struct zt_component *component,
                                  struct zt_source *stored, struct zt_error *error)
{
    struct zt_decoder *decoder = NULL;
    uint8_t *chunk = malloc(CHUNK_BYTES);
    size_t length = 1;
    enum zt_status status;

    if (chunk == NULL)
        return zt_fail_memory(error, "decoding");
    status = zt_decoder_open(component, stored, &decoder, error);
    while (status == ZT_OK && length > 0) {
        status = zt_decoder_read(decoder, chunk, CHUNK_BYTES, &length, error);
        if (status == ZT_OK)
            status = write_whole(file, chunk, length, error);
    }
    zt_decoder_close(decoder);
    free(chunk);
    return status;
}

static enum zt_status decode(const struct zt_component *component, struct zt_source *stored,
                             struct zt_source **out_source, struct zt_error *error)
{
    const int file = open_unnamed();
    enum zt_status status;

    if (file < 0)
        return zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET, "cannot keep decoded bytes: %s",
                       strerrordesc_np(errno));
    status = decode_into(file, component, stored, error);
    if (status == ZT_OK)
        status = zt_source_from_descriptor(file, out_source, error);
    if (status != ZT_OK)
        close(file);
    return status;
}

enum zt_status decoded_file_open(const struct zt_component *component, struct zt_source *stored,
                                 struct decoded_file *out_file, struct zt_error *error)
{
    struct decoded_file file = {.source = stored};
    struct zt_slice view;
    enum zt_status status = ZT_OK;

    file.is_owned = !zt_component_is_plain(component);
    if (!file.is_owned) {
        file.base = component->offset;
    } else if (zt_slice_of_view(NULL, component, &view)) {
        status = zt_slice_source(&view, stored, component->offset, &file.source, error);
    } else if (component->encoding == ZT_ENCODING_ZSTD_SEEKABLE && !component->big_endian) {
        file.is_sequential = true;
        status = zt_frames_source(component, stored, &file.source, error);
    } else {
        status = decode(component, stored, &file.source, error);
    }
    if (status == ZT_OK)
        *out_file = file;
    return status;
}

void decoded_file_close(struct decoded_file *file)
{
    if (file->is_owned)
        zt_source_close(file->source);
    *file = (struct decoded_file){.source = NULL};
}
