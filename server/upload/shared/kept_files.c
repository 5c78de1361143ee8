#include "upload/shared/kept_files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/server.h"
#include "store/staging.h"

/* The header of a request, from which descriptions come, is always smaller. */
#define DESCRIPTION_MAX ((size_t)64 << 10)
#define LAST_LINE       "end"

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

/* --- descriptions --- */

/* Returns NULL if out of memory; otherwise a text that the caller frees. */
static char *print_description(const struct kept_description *description,
                               const struct kept_upload *upload, size_t *out_length)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, out_length);

    assert(description->version > 0 && description->version < 10);
    assert(description->print != NULL);
    if (stream == NULL)
        return NULL;
    fprintf(stream, "%s %u\n", description->format, description->version);
    description->print(upload, stream);
    fputs(LAST_LINE "\n", stream);
    if (fclose(stream) == 0)
        return text;
    free(text);
    return NULL;
}

enum zt_status kept_description_write(const struct kept_description *description,
                                      const struct kept_upload *upload, bool is_durable,
                                      struct zt_error *error)
{
    size_t length = 0;
    char *text = print_description(description, upload, &length);
    struct staged_file *file;
    enum zt_status status;

    if (text == NULL)
        return zt_fail_memory(error, "an upload");
    assert(length <= DESCRIPTION_MAX);
    status = staging_folder_create(upload->server->store->staging, upload->entry.id,
                                   description->name, 0, &file, error);
    if (status == ZT_OK) {
        status = staged_file_write_at(file, 0, text, length, error);
        if (status == ZT_OK && is_durable)
            status = staged_file_sync(file, error);
        staged_file_close(file);
    }
    free(text);
    return status;
}

/* Returns the version in the first line; 0 if the line is another one. */
static unsigned version_of(const struct kept_description *description, const char *line)
{
    const size_t length = strlen(description->format);

    assert(length > 0 && description->version < 10);

    if (strncmp(line, description->format, length) != 0 || line[length] != ' ' ||
        line[length + 1] < '1' || line[length + 1] > '0' + (int)description->version ||
        line[length + 2] != '\0')
        return 0;
    return (unsigned)(line[length + 1] - '0');
}

/* Changes the text. */
static bool parse_description(const struct kept_description *description, char *text,
                              void *out_description, unsigned *out_version)
{
    char *rest;
    char *line = strtok_r(text, "\n", &rest);

    assert(description->take != NULL);
    *out_version = line != NULL ? version_of(description, line) : 0;
    if (*out_version == 0)
        return false;
    while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
        char *blank = strchr(line, ' ');

        if (blank == NULL)
            return strcmp(line, LAST_LINE) == 0;
        *blank = '\0';
        if (!description->take(out_description, line, blank + 1))
            return false;
    }
    return false;
}

enum kept_opened kept_description_read(const struct kept_description *description,
                                       struct staging *staging, const char *id,
                                       void *out_description, unsigned *out_version)
{
    unsigned version = 0;
    char *text = NULL;
    enum kept_opened opened =
        kept_text_read(staging, id, description->name, DESCRIPTION_MAX, &text);

    if (opened == KEPT_OPENED && !parse_description(description, text, out_description, &version))
        opened = KEPT_NOT_OURS;
    if (out_version != NULL)
        *out_version = version;
    free(text);
    return opened;
}
