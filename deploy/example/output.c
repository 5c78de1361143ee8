/* Files that appear under their names only when they are complete. */
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool output_publish(const struct zt_buffer *file, const char *path)
{
    size_t size = strlen(path) + sizeof(".partial");
    char *temporary = malloc(size);
    FILE *stream = NULL;
    bool written = false;

    if (temporary == NULL)
        return false;
    if (file->failed) {
        errno = ENOMEM;
        goto out;
    }
    snprintf(temporary, size, "%s.partial", path);
    stream = fopen(temporary, "wb");
    if (stream == NULL)
        goto out;
    written = fwrite(file->bytes, 1, file->length, stream) == file->length && fflush(stream) == 0 &&
              fsync(fileno(stream)) == 0;
    written = fclose(stream) == 0 && written;
    written = written && rename(temporary, path) == 0;
    if (!written) {
        int reason = errno;

        (void)unlink(temporary);
        errno = reason;
    }
out:
    free(temporary);
    return written;
}
