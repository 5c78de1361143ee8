#include "hub/xet/assembly.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "hub/write/repo_current.h"

/* Stored bytes per read, and decoded bytes per write: room for several of the longest chunks. */
#define STORED_BYTES  ((size_t)1 << 20)
#define DECODED_BYTES ((size_t)1 << 20)
/* The minimum that a file or a term counts in a step. */
#define ACT_BYTES ((uint64_t)16 << 10)

struct assembly_buffers {
    struct xorb_decoder *decoder;
    struct xet_shard shard;
    uint8_t ends[XORB_CHUNKS_MAX * 4]; /* of the chunks of a term */
    uint8_t stored[STORED_BYTES];
    uint8_t decoded[DECODED_BYTES];
    size_t decoded_length;
};

/* A term's data in the session's file. */
struct term_place {
    struct xet_shard_term term;
    struct xet_xorb xorb;
    uint32_t begin; /* of its chunks in the xorb */
};

static bool fail_read(struct assembly *assembly, const struct zt_error *error)
{
    if (error->status == ZT_INVALID)
        return failure_set(&assembly->failure, PROBLEM_INVALID_REQUEST, error);
    return failure_of_store(&assembly->failure, error);
}

static bool refuse(struct assembly *assembly, const char *why)
{
    return failure_refuse(&assembly->failure, PROBLEM_INVALID_REQUEST, "%s", why);
}

static void spend(struct assembly *assembly, uint64_t bytes)
{
    assembly->left -= bytes < assembly->left ? bytes : assembly->left;
}

/* --- the whole shard --- */

static bool find_xorb(struct assembly *assembly, const struct xet_shard_term *term,
                      struct xet_xorb *out_xorb)
{
    if (!xet_session_find(assembly->session, term->xorb, out_xorb))
        return refuse(assembly, "the shard names a xorb that was not sent in this upload, or that "
                                "this server no longer has: upload again");
    return term->end <= out_xorb->chunk_count ||
           refuse(assembly, "the shard names chunks that its xorb does not have");
}

/* *out_length: the length of the file. */
static bool check_file(struct assembly *assembly, const struct xet_shard_file *file,
                       uint64_t *out_length)
{
    *out_length = 0;
    for (uint32_t i = 0; i < file->term_count; i++) {
        struct xet_shard_term term;
        struct xet_xorb xorb;
        struct zt_error error;

        if (xet_shard_term_read(&assembly->buffers->shard, file, i, &term, &error) != ZT_OK)
            return fail_read(assembly, &error);
        if (!find_xorb(assembly, &term, &xorb))
            return false;
        *out_length += term.bytes;
    }
    return true;
}

static bool next_file(struct assembly *assembly, uint64_t record, struct xet_shard_file *out_file)
{
    struct zt_error error;

    return xet_shard_file_read(&assembly->buffers->shard, record, out_file, &error) == ZT_OK ||
           fail_read(assembly, &error);
}

/* Returns true if the repository already has the bytes. The file then need not be assembled: a
 * commit also finds them there. */
static bool repo_has(const struct assembly *assembly, const uint8_t sha256[32])
{
    const struct hub_version *version = assembly->version;

    for (size_t i = 0; version != NULL && i < version->count; i++)
        if (repo_current_has_bytes(&version->files[i]) &&
            memcmp(version->files[i].sha256, sha256, 32) == 0)
            return true;
    return false;
}

/* Returns true if the file exists, from an earlier shard, from another upload, or in the
 * repository. Clients send unchanged files too, and only then compute their SHA-256. */
static bool is_there(const struct assembly *assembly, const struct xet_shard_file *file)
{
    struct staged_asker asker = {.sees_all = assembly->sees_all};
    const struct staged_wanted wanted = {xet_session_repo(assembly->session), file->sha256, &asker};
    uint64_t length;

    snprintf(asker.owner, sizeof(asker.owner), "%s", xet_session_owner(assembly->session));
    return file->has_sha256 &&
           (repo_has(assembly, file->sha256) || staged_exists(assembly->server, &wanted, &length));
}

/* *out_length: the total length of the files to assemble. */
static bool check_shard(struct assembly *assembly, uint64_t *out_length)
{
    struct xet_shard_file file;
    uint64_t record = 0;
    uint64_t length;

    *out_length = 0;

    for (unsigned count = 0; next_file(assembly, record, &file); count++) {
        if (file.is_end)
            return true;
        if (count == ASSEMBLY_FILES_MAX)
            return refuse(assembly, "the shard has too many files");
        if (!check_file(assembly, &file, &length))
            return false;
        if (!is_there(assembly, &file))
            *out_length += length;
        record = file.next;
    }
    return false;
}

static bool claim_space(struct assembly *assembly, uint64_t length)
{
    if (!xet_session_take_space(assembly->session, length, &assembly->failure))
        return false;
    assembly->claimed = length;
    return true;
}

/* Releases disk space, so that other uploads, or the next file, can claim it. */
static void give_back_space(struct assembly *assembly, uint64_t length)
{
    if (length > assembly->claimed)
        length = assembly->claimed;
    xet_session_return_space(assembly->session, length);
    assembly->claimed -= length;
}

static bool begin(struct assembly *assembly)
{
    struct assembly_buffers *buffers = malloc(sizeof(*buffers));
    struct zt_error error;
    uint64_t length;

    if (buffers == NULL)
        return failure_no_memory(&assembly->failure, "a shard");
    buffers->decoded_length = 0;
    buffers->decoder = xorb_decoder_new();
    assembly->buffers = buffers;
    if (buffers->decoder == NULL)
        return failure_no_memory(&assembly->failure, "decoding");
    if (!xet_session_read(assembly->session, &assembly->source, &assembly->failure))
        return false;
    if (xet_shard_open(&buffers->shard, assembly->source, assembly->offset, assembly->length,
                       &error) != ZT_OK)
        return fail_read(assembly, &error);
    /* If the version is unknown, every file is assembled. The same is done for a client that sees
     * only some files, because its commit cannot use the others. */
    if (assembly->sees_all)
        (void)repo_current_find(assembly->server, zt_text_from(xet_session_repo(assembly->session)),
                                &assembly->version, &error);
    return check_shard(assembly, &length) && claim_space(assembly, length);
}

/* --- one term --- */

static bool flush(struct assembly *assembly)
{
    struct assembly_buffers *buffers = assembly->buffers;
    const size_t length = buffers->decoded_length;

    if (length == 0)
        return true;
    if (!staged_write(assembly->object, assembly->written, buffers->decoded, length,
                      &assembly->failure))
        return false;
    zt_hasher_update(assembly->hasher, buffers->decoded, length);
    assembly->written += length;
    spend(assembly, length);
    buffers->decoded_length = 0;
    return true;
}

static bool refuse_other_length(struct assembly *assembly)
{
    return refuse(assembly, "the chunks of a term differ in length from the shard");
}

/* left: the maximum that the term may still decode to. */
static bool decode_chunk(struct assembly *assembly, const uint8_t *bytes, uint32_t length,
                         uint64_t *left)
{
    struct assembly_buffers *buffers = assembly->buffers;
    struct xorb_chunk chunk;

    /* The header was checked while it arrived. */
    if (length < XORB_HEADER_BYTES || xorb_chunk_read(bytes, &chunk) != NULL ||
        XORB_HEADER_BYTES + chunk.stored != length)
        return refuse(assembly, "a chunk is not where the xorb had it");
    if (chunk.length > *left)
        return refuse_other_length(assembly);
    if (buffers->decoded_length + chunk.length > DECODED_BYTES && !flush(assembly))
        return false;
    if (!xorb_decode(buffers->decoder, &chunk, bytes + XORB_HEADER_BYTES,
                     buffers->decoded + buffers->decoded_length))
        return refuse(assembly, "a chunk does not decode to the length that it states");
    buffers->decoded_length += chunk.length;
    *left -= chunk.length;
    return true;
}

static uint32_t end_of(const struct assembly *assembly, uint32_t index)
{
    return zt_load_le32(assembly->buffers->ends + (size_t)index * 4);
}

/* Reads where the chunks of a term end, relative to its first byte. */
static bool read_ends(struct assembly *assembly, struct term_place *place)
{
    const struct xet_shard_term *term = &place->term;
    uint8_t *ends = assembly->buffers->ends;
    const uint32_t skipped = term->first > 0 ? term->first - 1 : 0;
    struct zt_error error;

    if (zt_source_read_at(assembly->source, place->xorb.ends + (uint64_t)skipped * 4, ends,
                          (size_t)(term->end - skipped) * 4, &error) != ZT_OK)
        return fail_read(assembly, &error);
    place->begin = 0;
    if (term->first > 0) {
        place->begin = zt_load_le32(ends);
        memmove(ends, ends + 4, (size_t)(term->end - term->first) * 4);
    }
    return true;
}

/* Reads as many chunks as fit; from is the first of them. */
static bool read_chunks(struct assembly *assembly, const struct term_place *place, uint32_t from,
                        uint32_t *out_end)
{
    const uint32_t count = place->term.end - place->term.first;
    const uint32_t begin = from == 0 ? place->begin : end_of(assembly, from - 1);
    struct zt_error error;
    uint32_t end = from;

    while (end < count && end_of(assembly, end) - begin <= STORED_BYTES)
        end++;
    assert(end > from);
    *out_end = end;
    return zt_source_read_at(assembly->source, place->xorb.offset + begin,
                             assembly->buffers->stored, end_of(assembly, end - 1) - begin,
                             &error) == ZT_OK ||
           fail_read(assembly, &error);
}

static bool decode_chunks(struct assembly *assembly, const struct term_place *place, uint32_t from,
                          uint32_t end, uint64_t *left)
{
    const uint32_t begin = from == 0 ? place->begin : end_of(assembly, from - 1);
    uint32_t at = begin;

    for (uint32_t i = from; i < end; i++) {
        const uint32_t next = end_of(assembly, i);

        if (!decode_chunk(assembly, assembly->buffers->stored + (at - begin), next - at, left))
            return false;
        at = next;
    }
    return true;
}

static bool write_term(struct assembly *assembly)
{
    struct term_place place;
    struct zt_error error;
    uint64_t left;
    uint32_t end;

    if (xet_shard_term_read(&assembly->buffers->shard, &assembly->file, assembly->term, &place.term,
                            &error) != ZT_OK)
        return fail_read(assembly, &error);
    if (!find_xorb(assembly, &place.term, &place.xorb) || !read_ends(assembly, &place))
        return false;
    left = place.term.bytes;
    for (uint32_t at = 0; at < place.term.end - place.term.first; at = end)
        if (!read_chunks(assembly, &place, at, &end) ||
            !decode_chunks(assembly, &place, at, end, &left))
            return false;
    assembly->term++;
    return left == 0 || refuse_other_length(assembly);
}

/* --- one file --- */

static bool begin_file(struct assembly *assembly)
{
    struct staged_origin origin = {xet_session_repo(assembly->session),
                                   xet_session_client(assembly->session),
                                   xet_session_owner(assembly->session), 0};

    if (!check_file(assembly, &assembly->file, &origin.length))
        return false;
    give_back_space(assembly, origin.length);
    assembly->term = 0;
    assembly->written = 0;
    if (zt_hasher_new(ZT_DIGEST_SHA256, &assembly->hasher) != ZT_OK)
        return failure_no_memory(&assembly->failure, "hashing");
    assembly->object = staged_begin(assembly->server, &origin, &assembly->failure);
    return assembly->object != NULL;
}

static bool finish_file(struct assembly *assembly)
{
    struct zt_digest digest;

    if (!flush(assembly))
        return false;
    zt_hasher_finish(assembly->hasher, &digest);
    zt_hasher_free(assembly->hasher);
    assembly->hasher = NULL;
    if (assembly->file.has_sha256 && memcmp(digest.bytes, assembly->file.sha256, 32) != 0)
        return failure_refuse(&assembly->failure, PROBLEM_DIGEST_MISMATCH,
                              "a file's SHA-256 differs from the shard's");
    if (!staged_finish(assembly->object, digest.bytes, &assembly->failure))
        return false;
    assembly->object = NULL;
    return true;
}

/* Begins the next file, or skips it if it is not needed. */
static bool take_up(struct assembly *assembly)
{
    if (!next_file(assembly, assembly->record, &assembly->file))
        return false;
    assembly->record = assembly->file.next;
    assembly->is_done = assembly->file.is_end;
    return assembly->is_done || is_there(assembly, &assembly->file) || begin_file(assembly);
}

static bool go_on(struct assembly *assembly)
{
    spend(assembly, ACT_BYTES);
    if (assembly->object == NULL)
        return take_up(assembly);
    if (assembly->term < assembly->file.term_count)
        return write_term(assembly);
    return finish_file(assembly);
}

bool assembly_step(struct assembly *assembly)
{
    assembly->left = ASSEMBLY_STEP_BYTES;
    if (assembly->buffers == NULL && !begin(assembly))
        return false;
    while (assembly->left > 0 && !assembly->is_done)
        if (!go_on(assembly))
            return false;
    return !assembly->is_done;
}

void assembly_clear(struct assembly *assembly)
{
    staged_abandon(assembly->object);
    assembly->object = NULL;
    zt_hasher_free(assembly->hasher);
    assembly->hasher = NULL;
    if (assembly->buffers != NULL)
        xorb_decoder_free(assembly->buffers->decoder);
    free(assembly->buffers);
    assembly->buffers = NULL;
    give_back_space(assembly, assembly->claimed);
    hub_version_release(assembly->version);
    assembly->version = NULL;
}
