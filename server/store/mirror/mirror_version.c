#include "store/mirror/mirror_version.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/upstream.h"
#include "zt/digest.h"

#define DIGEST_BYTES 32
/* An upstream's list has no more (upstream.h). */
#define ENTRIES_MAX 1000000

static_assert(STORE_COMMIT_SIZE == UPSTREAM_COMMIT_SIZE, "the same commits");

static struct mirror_version *new_version(size_t count, size_t text_bytes)
{
    struct mirror_version *version = calloc(1, sizeof(*version));

    if (version == NULL)
        return NULL;
    atomic_init(&version->references, 1);
    version->entries = calloc(count + 1, sizeof(version->entries[0]));
    version->texts = malloc(text_bytes + 1);
    if (version->entries != NULL && version->texts != NULL)
        return version;
    mirror_version_release(version);
    return NULL;
}

struct mirror_version *mirror_version_hold(struct mirror_version *version)
{
    atomic_fetch_add(&version->references, 1);
    return version;
}

void mirror_version_release(struct mirror_version *version)
{
    if (version == NULL || atomic_fetch_sub(&version->references, 1) > 1)
        return;
    free(version->entries);
    free(version->texts);
    free(version);
}

/* --- making --- */

bool mirror_entry_has_bytes_of(const struct mirror_entry *a, const struct mirror_entry *b)
{
    if (a->digest_kind != b->digest_kind || a->size_bytes != b->size_bytes)
        return false;
    if (a->digest_kind != UPSTREAM_NO_DIGEST)
        return memcmp(a->digest, b->digest, DIGEST_BYTES) == 0;
    return a->etag[0] != '\0' && strcmp(a->etag, b->etag) == 0 && strcmp(a->path, b->path) == 0;
}

/* Keeps what is known of a file whose bytes are the same as before. */
static void carry_over(struct mirror_entry *entry, const struct mirror_version *before)
{
    const struct mirror_entry *old =
        before != NULL ? mirror_version_find(before, zt_text_from(entry->path)) : NULL;

    if (old == NULL)
        return;
    entry->is_asked = old->is_asked;
    if (!mirror_entry_has_bytes_of(entry, old))
        return;
    entry->modified_ns = old->modified_ns;
    entry->is_begun = old->is_begun;
    entry->was_begun_before = old->was_begun_before;
    entry->wrong_s = old->wrong_s;
    entry->is_verified = old->is_verified;
    memcpy(entry->proof, old->proof, sizeof(entry->proof));
}

struct mirror_version *mirror_version_make(const struct upstream_listing *listing,
                                           int64_t modified_ns, const struct mirror_version *before)
{
    struct mirror_version *version;
    size_t bytes = 0;
    char *at;

    for (size_t i = 0; i < listing->count; i++)
        bytes += strlen(listing->files[i].path) + strlen(listing->files[i].etag) + 2;
    version = new_version(listing->count, bytes);
    if (version == NULL)
        return NULL;
    at = version->texts;
    version->count = listing->count;
    version->modified_ns = modified_ns;
    memcpy(version->commit, listing->commit, sizeof(version->commit));
    for (size_t i = 0; i < listing->count; i++) {
        const struct upstream_file *file = &listing->files[i];
        struct mirror_entry *entry = &version->entries[i];

        entry->path = strcpy(at, file->path);
        at += strlen(at) + 1;
        entry->etag = strcpy(at, file->etag);
        at += strlen(at) + 1;
        entry->size_bytes = file->size_bytes;
        entry->digest_kind = file->digest_kind;
        memcpy(entry->digest, file->digest, sizeof(entry->digest));
        entry->modified_ns = modified_ns;
        carry_over(entry, before);
    }
    assert((size_t)(at - version->texts) == bytes);
    return version;
}

/* --- looking --- */

size_t mirror_version_lower_bound(const struct mirror_version *version, struct zt_text path)
{
    size_t low = 0;
    size_t high = version->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (zt_text_compare(zt_text_from(version->entries[middle].path), path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low == high);
    return low;
}

struct mirror_entry *mirror_version_find(const struct mirror_version *version, struct zt_text path)
{
    const size_t at = mirror_version_lower_bound(version, path);

    return at < version->count && zt_text_is(path, version->entries[at].path)
               ? &version->entries[at]
               : NULL;
}

struct upstream_place mirror_entry_place(const char *repository,
                                         const struct mirror_version *version,
                                         const struct mirror_entry *entry)
{
    struct upstream_place place = {.repository = repository,
                                   .commit = version->commit,
                                   .path = entry->path,
                                   .etag = entry->etag,
                                   .size_bytes = entry->size_bytes,
                                   .digest_kind = entry->digest_kind};

    memcpy(place.digest, entry->digest, sizeof(place.digest));
    return place;
}

/* Without a digest, the path names the bytes, together with the version of an object or the
 * commit. */
struct file_identity mirror_entry_identity(const struct mirror_version *version,
                                           const struct mirror_entry *entry)
{
    uint64_t parts[4];

    if (entry->digest_kind != UPSTREAM_NO_DIGEST) {
        parts[0] = zt_xxh3(entry->digest, sizeof(entry->digest));
        parts[1] = 0;
    } else {
        const char *name = entry->etag[0] != '\0' ? entry->etag : version->commit;

        parts[0] = zt_xxh3(name, strlen(name));
        parts[1] = zt_xxh3(entry->path, strlen(entry->path));
    }
    parts[2] = (uint64_t)entry->digest_kind;
    parts[3] = entry->size_bytes;
    return (struct file_identity){.inode = zt_xxh3(parts, sizeof(parts)),
                                  .size_bytes = entry->size_bytes,
                                  .modified_ns = entry->modified_ns,
                                  .changed_ns = entry->modified_ns};
}

/* --- records --- */

enum { FLAG_ASKED = 1, FLAG_VERIFIED = 2, FLAG_BEGUN = 4 };

static uint64_t flags_of(const struct mirror_entry *entry)
{
    return (entry->is_asked ? FLAG_ASKED : 0u) | (entry->is_verified ? FLAG_VERIFIED : 0u) |
           (entry->is_begun ? FLAG_BEGUN : 0u);
}

void mirror_version_write(const struct mirror_version *version, struct record_writer *out)
{
    size_t text_bytes = 0;

    for (size_t i = 0; i < version->count; i++)
        text_bytes += strlen(version->entries[i].path) + strlen(version->entries[i].etag) + 2;
    record_write_text(out, version->commit);
    record_write_uint(out, (uint64_t)version->modified_ns, 8);
    record_write_uint(out, version->count, 4);
    record_write_uint(out, text_bytes, 4);
    for (size_t i = 0; i < version->count; i++) {
        const struct mirror_entry *entry = &version->entries[i];

        record_write_text(out, entry->path);
        record_write_text(out, entry->etag);
        record_write_uint(out, entry->size_bytes, 8);
        record_write_uint(out, (uint64_t)entry->digest_kind, 1);
        record_write_bytes(out, entry->digest, sizeof(entry->digest));
        record_write_uint(out, (uint64_t)entry->modified_ns, 8);
        record_write_uint(out, flags_of(entry), 1);
        record_write_uint(out, (uint64_t)entry->wrong_s, 8);
        record_write_bytes(out, entry->proof, sizeof(entry->proof));
    }
}

/* Copies a text to *at, which has *left bytes. */
static bool read_text(struct record_reader *in, char **at, size_t *left, const char **out_text)
{
    char *text = record_read_text(in);
    const size_t bytes = text != NULL ? strlen(text) + 1 : 0;
    const bool fits = text != NULL && bytes <= *left;

    if (fits) {
        *out_text = memcpy(*at, text, bytes);
        *at += bytes;
        *left -= bytes;
    }
    free(text);
    return fits;
}

static bool read_entry(struct record_reader *in, char **at, size_t left, struct mirror_entry *entry)
{
    const uint8_t *digest;
    const uint8_t *proof;
    uint64_t flags;

    if (!read_text(in, at, &left, &entry->path) || !read_text(in, at, &left, &entry->etag) ||
        strlen(entry->etag) >= UPSTREAM_ETAG_SIZE)
        return false;
    entry->size_bytes = record_read_uint(in, 8);
    entry->digest_kind = (enum upstream_digest)record_read_uint(in, 1);
    digest = record_read_bytes(in, sizeof(entry->digest));
    entry->modified_ns = (int64_t)record_read_uint(in, 8);
    flags = record_read_uint(in, 1);
    entry->wrong_s = (int64_t)record_read_uint(in, 8);
    proof = record_read_bytes(in, sizeof(entry->proof));
    if (in->failed || entry->digest_kind > UPSTREAM_GIT_SHA1)
        return false;
    memcpy(entry->digest, digest, sizeof(entry->digest));
    memcpy(entry->proof, proof, sizeof(entry->proof));
    entry->is_asked = (flags & FLAG_ASKED) != 0;
    entry->is_verified = (flags & FLAG_VERIFIED) != 0;
    entry->is_begun = entry->is_begun_saved = (flags & FLAG_BEGUN) != 0;
    entry->was_begun_before = entry->is_begun && !entry->is_verified;
    return true;
}

struct mirror_version *mirror_version_read(struct record_reader *in)
{
    char *commit = record_read_text(in);
    const int64_t modified_ns = (int64_t)record_read_uint(in, 8);
    const size_t count = (size_t)record_read_uint(in, 4);
    const size_t text_bytes = (size_t)record_read_uint(in, 4);
    struct mirror_version *version = NULL;
    char *at;

    if (!in->failed && commit != NULL && strlen(commit) < STORE_COMMIT_SIZE &&
        count <= ENTRIES_MAX && text_bytes <= in->left)
        version = new_version(count, text_bytes);
    if (version != NULL)
        strcpy(version->commit, commit);
    free(commit);
    if (version == NULL)
        return NULL;
    version->modified_ns = modified_ns;
    at = version->texts;
    for (; version->count < count; version->count++)
        if (!read_entry(in, &at, text_bytes - (size_t)(at - version->texts),
                        &version->entries[version->count])) {
            mirror_version_release(version);
            return NULL;
        }
    return version;
}
