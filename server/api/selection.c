/* Reading the query of a manifest. The tag of a selection is the generation's with a hash of what was asked for: the
 * same question to the same version of a file has the same answer. */
#include "api/selection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/resolve.h"
#include "model/glob.h"
#include "zt/coding.h"
#include "zt/digest.h"

/* Two words in hex, a letter in front and NUL. */
#define SUFFIX_SIZE 64
/* Shorter texts fit in the packet that the header needs anyhow. */
#define WORTH_CODING_BYTES 1024
/* Longer ones take longer than about 10 ms to compress. */
#define LONG_TEXT_BYTES 262144

bool selection_read_matches(struct request *request, struct manifest_selection *selection)
{
    struct zt_text globs[GLOB_SET_MAX];
    struct zt_text glob;
    size_t count = 0;
    size_t bytes = 0;
    for (unsigned nth = 0; request_query(request, "match", nth, &glob); nth++) {
        bytes += glob.length;
        if (!glob_is_valid(glob) || count == GLOB_SET_MAX || bytes > GLOB_SET_BYTES_MAX) {
            problem_reply(request, PROBLEM_INVALID_REQUEST,
                          "match is not a glob: at most %d of at most %d bytes, every '[' closed by ']'", GLOB_SET_MAX,
                          GLOB_MAX);
            return false;
        }
        globs[count++] = glob;
    }
    struct zt_text *kept = count > 0 ? request_allocate(request, count * sizeof *kept) : NULL;
    if (kept == NULL && count > 0) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return false;
    }
    if (count > 0) {
        memcpy(kept, globs, count * sizeof *kept);
    }
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
            problem_reply(request, PROBLEM_INVALID_REQUEST, "fields are shape, format, attributes and components");
            return false;
        }
        selection->fields |= fields;
    }
    return true;
}

/* False: replied. */
static bool choose_coding(struct request *request, struct selection *selection)
{
    static const enum coding offered[] = {CODING_ZSTD, CODING_GZIP, CODING_IDENTITY};
    static const enum coding plain[] = {CODING_IDENTITY};
    const char *field = request_header(request, "Accept-Encoding");
    selection->coding = negotiate_coding(field, offered, sizeof offered / sizeof offered[0]);
    selection->identity_taken = negotiate_coding(field, plain, 1) == CODING_IDENTITY;
    if (selection->coding == CODING_NONE) {
        problem_reply(request, PROBLEM_NOT_ACCEPTABLE, "a manifest is there as it is, and coded as zstd or gzip");
    }
    request->reply.vary = "Accept-Encoding";
    return selection->coding != CODING_NONE;
}

struct selection *selection_read(struct request *request)
{
    struct selection *selection = request_allocate(request, sizeof *selection);
    if (selection == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    *selection = (struct selection){.manifest.prefix = {"", 0}};
    if (!query_prefix(request, &selection->manifest.prefix) || !selection_read_matches(request, &selection->manifest) ||
        !read_fields(request, &selection->manifest) || !query_switch(request, "pretty", &selection->pretty) ||
        !choose_coding(request, selection)) {
        return NULL;
    }
    selection->is_whole = selection->manifest.prefix.length == 0 && selection->manifest.match_count == 0 &&
                          selection->manifest.fields == 0 && !selection->pretty;
    return selection;
}

struct manifest_source selection_source(const struct generation *generation)
{
    return (struct manifest_source){.name = generation_name(generation),
                                    .path = generation->path,
                                    .etag = generation->etag,
                                    .modified_ns = generation->identity.modified_ns};
}

/* On a worker. The compressed text takes the place of the JSON. */
static void compress(struct request *request)
{
    struct selection *selection = request->context;
    struct json *json = selection->json;
    enum zt_coding coding = selection->coding == CODING_ZSTD ? ZT_CODING_ZSTD : ZT_CODING_GZIP;
    uint8_t *bytes;
    size_t length;
    if (zt_encode(coding, json->text, json->length, &bytes, &length, NULL) != ZT_OK) {
        json->failed = true;
        return;
    }
    free(json->text);
    json->text = (char *)bytes;
    json->length = json->capacity = length;
}

enum outcome selection_code(struct request *request, struct selection *selection)
{
    const struct json *json = selection->json;
    if (!selection->coded) {
        selection->coded = true;
        if (selection->identity_taken && json->length < WORTH_CODING_BYTES) {
            selection->coding = CODING_IDENTITY;
        }
        if (selection->coding != CODING_IDENTITY && !json->failed) {
            return json->length > LONG_TEXT_BYTES ? request_work_long(request, compress)
                                                  : request_work(request, compress);
        }
    }
    request->reply.coding = coding_name(selection->coding);
    return OUTCOME_READY;
}

/* Texts with their lengths in front, so that no two selections read the same. */
static void describe(FILE *stream, const struct selection *selection, const char *what)
{
    const struct manifest_selection *manifest = &selection->manifest;
    fprintf(stream, "%s %d %u %d %zu:", what, selection->coding, manifest->fields, selection->pretty,
            manifest->prefix.length);
    fwrite(manifest->prefix.bytes, 1, manifest->prefix.length, stream);
    for (size_t i = 0; i < manifest->match_count; i++) {
        fprintf(stream, " %zu:", manifest->matches[i].length);
        fwrite(manifest->matches[i].bytes, 1, manifest->matches[i].length, stream);
    }
}

const char *selection_etag(struct request *request, const struct selection *selection, const char *what)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL) {
        return NULL;
    }
    describe(stream, selection, what);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    uint64_t words[2];
    zt_xxh3_128(text, length, words);
    free(text);
    char suffix[SUFFIX_SIZE];
    snprintf(suffix, sizeof suffix, "m%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    char etag[GENERATION_ETAG_SIZE + SUFFIX_SIZE];
    generation_etag(request->generation, suffix, etag, sizeof etag);
    return request_print(request, "%s", etag);
}
