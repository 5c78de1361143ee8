/* Parses descriptions strictly: any other text was not written by this server, or not
 * completely. */
#include "upload/tus/resumable_description.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "upload/shared/write_checks.h"
#include "upload/tus/tus_fields.h"

#define FIRST_LINE "ztserve-resumable 1"
#define LAST_LINE  "end"
/* Written instead of an unknown length. */
#define UNKNOWN "unknown"

static const char *const text_keys[RESUMABLE_TEXTS] = {
    [RESUMABLE_METADATA] = "metadata",
    [RESUMABLE_IF_MATCH] = "if-match",
    [RESUMABLE_IF_NONE_MATCH] = "if-none-match",
    [RESUMABLE_IF_UNMODIFIED_SINCE] = "if-unmodified-since",
    [RESUMABLE_REPR_DIGEST] = "repr-digest",
    [RESUMABLE_CONCAT] = "concat",
    [RESUMABLE_OWNER] = "owner",
};

/* Header fields and clients' names contain no line ends, so each is one line. A length that was
 * stated later is not part of the description. */
void resumable_description_print(struct resumable *resumable, FILE *stream)
{
    const struct registry_entry *entry = &resumable->kept.entry;
    const uint64_t length = atomic_load(&resumable->length);

    fprintf(stream, "%s\n", FIRST_LINE);
    if (entry->model[0] != '\0')
        fprintf(stream, "model %s\n", entry->model);
    if (length == RESUMABLE_UNKNOWN)
        fprintf(stream, "length %s\n", UNKNOWN);
    else
        fprintf(stream, "length %" PRIu64 "\n", length);
    fprintf(stream, "created %" PRId64 "\n", (int64_t)entry->created);
    for (size_t i = 0; i < RESUMABLE_TEXTS; i++)
        if (resumable->texts[i] != NULL)
            fprintf(stream, "%s %s\n", text_keys[i], resumable->texts[i]);
    fprintf(stream, "%s\n", LAST_LINE);
}

static bool take_text(struct resumable_description *description, const char *key, const char *value)
{
    for (size_t i = 0; i < RESUMABLE_TEXTS; i++) {
        if (strcmp(key, text_keys[i]) == 0 && description->texts[i] == NULL) {
            description->texts[i] = strdup(value);
            return description->texts[i] != NULL;
        }
    }
    return false;
}

static bool take_model(struct resumable_description *description, const char *value)
{
    snprintf(description->model, sizeof(description->model), "%s", value);
    return strlen(value) < sizeof(description->model);
}

static bool take_length(struct resumable_description *description, const char *value)
{
    description->length = RESUMABLE_UNKNOWN;
    description->has_length =
        strcmp(value, UNKNOWN) == 0 || tus_number_parse(value, &description->length);
    return description->has_length;
}

static bool take_line(struct resumable_description *description, char *line)
{
    char *blank = strchr(line, ' ');

    if (blank == NULL) {
        description->is_whole = strcmp(line, LAST_LINE) == 0;
        return description->is_whole;
    }
    *blank = '\0';
    if (strcmp(line, "model") == 0)
        return take_model(description, blank + 1);
    if (strcmp(line, "length") == 0)
        return take_length(description, blank + 1);
    if (strcmp(line, "created") == 0)
        return tus_number_parse(blank + 1, &description->created);
    return take_text(description, line, blank + 1);
}

/* Returns true if the name is right: parts have none, and all others have one. */
static bool has_its_name(const struct resumable_description *description)
{
    const char *concat = description->texts[RESUMABLE_CONCAT];
    const char *metadata = description->texts[RESUMABLE_METADATA];
    const struct zt_text name = zt_text_from(description->model);
    const char *urls;

    if (concat != NULL && tus_concat_parse(concat, &urls) == TUS_CONCAT_PART)
        return name.length == 0;
    return metadata != NULL && tus_metadata_is_of_file(metadata) ? file_path_is_writable(name)
                                                                 : model_name_is_plain(name);
}

bool resumable_description_parse(char *text, struct resumable_description *out_description)
{
    char *rest;
    char *line = strtok_r(text, "\n", &rest);

    *out_description = (struct resumable_description){.has_length = false};
    if (line == NULL || strcmp(line, FIRST_LINE) != 0)
        return false;
    while (!out_description->is_whole && (line = strtok_r(NULL, "\n", &rest)) != NULL)
        if (!take_line(out_description, line))
            return false;
    return out_description->is_whole && out_description->has_length &&
           has_its_name(out_description);
}
