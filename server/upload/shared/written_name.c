/* The names under which models are written. */
#include "upload/shared/written_name.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/fields/uri.h"
#include "store/store.h"

/* NAME_MAX of Linux file systems. */
#define FILE_NAME_MAX 255

static struct zt_text last_part(struct zt_text name)
{
    const char *slash = memrchr(name.bytes, '/', name.length);
    const size_t before = slash != NULL ? (size_t)(slash + 1 - name.bytes) : 0;

    return (struct zt_text){name.bytes + before, name.length - before};
}

/* The last part becomes the name of a file. */
static bool fits_in_file(struct zt_text name)
{
    return last_part(name).length + strlen(".zt") <= FILE_NAME_MAX;
}

/* The length of a plain name without the known extensions at its end. */
static size_t bare_length(struct zt_text name)
{
    char path[MODEL_PLAIN_NAME_MAX + 1];
    unsigned rank;

    memcpy(path, name.bytes, name.length);
    path[name.length] = '\0';
    while (model_path_split(path, &name.length, &rank))
        path[name.length] = '\0';
    return name.length;
}

/* "<stem>-<name>", and the shard's name ends with the extension that it gets once more. */
static bool is_like_shard(struct zt_text name)
{
    const struct zt_text part = last_part(name);
    const size_t length = strlen(".zt");

    return part.length > length && memchr(part.bytes, '-', part.length - length) != NULL &&
           strncasecmp(part.bytes + part.length - length, ".zt", length) == 0;
}

/* The detail of both refusals, with the path of the model that is meant. */
static void describe(char *out_detail, size_t size, struct zt_text name, size_t length)
{
    struct href href;

    href_init(&href);
    href_model(&href, (struct zt_text){name.bytes, length});
    snprintf(out_detail, size,
             "a model's name is without the extension %.*s, which the server adds: the URL is %s",
             (int)(name.length - length), name.bytes + length,
             href.failed ? "the one without it" : href.text);
    href_free(&href);
}

bool written_name_refuse(struct request *request, struct zt_text name, bool may_be_shard)
{
    /* Three times the name, escaped, and the sentence. */
    char detail[4 * MODEL_PLAIN_NAME_MAX + 256];
    size_t length;

    if (!model_name_is_plain(name) || !fits_in_file(name)) {
        problem_reply(request, PROBLEM_INVALID_NAME,
                      "the name of a model to be written is parts of letters, digits, '.', '_' "
                      "and '-', each of which begins with a letter or digit, joined by '/', and "
                      "fits in a file's name");
        return true;
    }
    length = bare_length(name);
    if (length == name.length || (may_be_shard && is_like_shard(name)))
        return false;
    describe(detail, sizeof(detail), name, length);
    problem_reply(request, PROBLEM_INVALID_NAME, "%s", detail);
    return true;
}

bool written_name_is_doubled(const char *name, const char *extension, struct failure *failure)
{
    const struct zt_text text = zt_text_from(name);
    const size_t length = strlen(extension);
    char detail[4 * MODEL_PLAIN_NAME_MAX + 256];

    if (text.length <= length || strcasecmp(name + text.length - length, extension) != 0)
        return false;
    describe(detail, sizeof(detail), text, bare_length(text));
    failure_refuse(failure, PROBLEM_INVALID_NAME, "%s", detail);
    return true;
}
