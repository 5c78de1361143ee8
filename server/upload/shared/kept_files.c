#include "upload/shared/kept_files.h"

#include <assert.h>
#include <stdlib.h>

#include "store/staging.h"

enum kept_opened kept_opened_by(enum zt_status status)
{
    if (status == ZT_OK)
        return KEPT_OPENED;
    return status == ZT_NOT_FOUND ? KEPT_NOT_OURS : KEPT_UNREADABLE;
}

enum kept_opened kept_text_of(struct staged_file *file, size_t most_bytes, char **out_text)
{
    const uint64_t length = staged_file_length(file);
    struct zt_source *source;
    char *text;

    assert(most_bytes < SIZE_MAX);
    if (length > most_bytes)
        return KEPT_NOT_OURS;
    text = malloc((size_t)length + 1);
    if (text == NULL || staged_file_read_back(file, &source, NULL) != ZT_OK ||
        zt_source_read_at(source, 0, text, (size_t)length, NULL) != ZT_OK) {
        free(text);
        return KEPT_UNREADABLE;
    }
    text[length] = '\0';
    *out_text = text;
    return KEPT_OPENED;
}

enum kept_opened kept_text_read(struct staging *staging, const char *id, const char *name,
                                size_t most_bytes, char **out_text)
{
    struct staged_file *file;
    enum kept_opened opened = kept_opened_by(staging_folder_open(staging, id, name, &file, NULL));

    if (opened == KEPT_OPENED) {
        opened = kept_text_of(file, most_bytes, out_text);
        staged_file_close(file);
    }
    return opened;
}
