/* Reading the query of a manifest. The tag of a selection is the generation's with a hash of what
 * was asked for: the same question to the same version of a file has the same answer. */
#include "api/selection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/resolve.h"
#include "base/glob.h"
#include "zt/digest.h"

/* Two words in hex, a letter in front and NUL. */
#define SUFFIX_SIZE 64

bool selection_read_matches(struct request *request, struct manifest_selection *selection)
{
    struct zt_text globs[GLOB_SET_MAX];
    struct zt_text glob;
    size_t count = 0;
    size_t bytes = 0;
    struct zt_text *kept;

    for (unsigned nth = 0; request_query(request, "match", nth, &glob); nth++) {
        bytes += glob.length;
        if (!glob_is_valid(glob) || count == GLOB_SET_MAX || bytes > GLOB_SET_BYTES_MAX) {
            problem_reply(
                request, PROBLEM_INVALID_REQUEST,
                "match is not a glob: at most %d of at most %d bytes, every '[' closed by ']'",
                GLOB_SET_MAX, GLOB_MAX);
            return false;
        }
        globs[count++] = glob;
    }
    kept = count > 0 ? request_allocate(request, count * sizeof(*kept)) : NULL;
    if (kept == NULL && count > 0) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return false;
    }
    if (count > 0)
        memcpy(kept, globs, count * sizeof(*kept));
    selection->matches = kept;
    selection->match_count = count;
    return true;
}

static bool read_fields(struct request *request, struct manifest_selection *selection)
{
    struct zt_text text;

    for (unsigned nth = 0; request_query(request, "fields", nth, &text); nth++) {
        unsigned fields;

        if (!manifest_fields_parse(text, &fields)) {
            problem_reply(request, PROBLEM_INVALID_REQUEST,
                          "fields are shape, format, attributes and components");
            return false;
        }
        selection->fields |= fields;
    }
    return true;
}

struct selection *selection_read(struct request *request)
{
    struct selection *selection = request_allocate(request, sizeof(*selection));

    if (selection == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    *selection = (struct selection){.manifest.prefix = {"", 0}};
    if (!query_prefix(request, &selection->manifest.prefix) ||
        !selection_read_matches(request, &selection->manifest) ||
        !read_fields(request, &selection->manifest) ||
        !query_switch(request, "pretty", &selection->pretty) ||
        !coded_reply_choose(request, &selection->reply))
        return NULL;
    selection->is_whole = selection->manifest.prefix.length == 0 &&
                          selection->manifest.match_count == 0 && selection->manifest.fields == 0 &&
                          !selection->pretty;
    return selection;
}

struct manifest_source selection_source(const struct generation *generation)
{
    return (struct manifest_source){.name = generation_name(generation),
                                    .path = generation->path,
                                    .etag = generation->etag,
                                    .modified_ns = generation->identity.modified_ns};
}

/* Texts with their lengths in front, so that no two selections read the same. */
static void describe(FILE *stream, const struct selection *selection, const char *what)
{
    const struct manifest_selection *manifest = &selection->manifest;

    fprintf(stream, "%s %d %u %d %zu:", what, selection->reply.coding, manifest->fields,
            selection->pretty, manifest->prefix.length);
    fwrite(manifest->prefix.bytes, 1, manifest->prefix.length, stream);
    for (size_t i = 0; i < manifest->match_count; i++) {
        fprintf(stream, " %zu:", manifest->matches[i].length);
        fwrite(manifest->matches[i].bytes, 1, manifest->matches[i].length, stream);
    }
}

const char *selection_etag(struct request *request, const struct selection *selection,
                           const char *what)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    uint64_t words[2];
    char suffix[SUFFIX_SIZE];
    char etag[GENERATION_ETAG_SIZE + SUFFIX_SIZE];

    if (stream == NULL)
        return NULL;
    describe(stream, selection, what);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    zt_xxh3_128(text, length, words);
    free(text);
    snprintf(suffix, sizeof(suffix), "m%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    generation_etag(request->generation, suffix, etag, sizeof(etag));
    return request_print(request, "%s", etag);
}
