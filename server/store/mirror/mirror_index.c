#include "store/mirror/mirror_index.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "disk/whole_file.h"
#include "zt/digest.h"

/* The last digit is the format version. */
#define MAGIC       "ZTSMIR03"
#define MAGIC_BYTES 8
/* Time between doubts about the current commit of one repository. */
#define DOUBT_MS       1000
#define FILE_BYTES_MAX ((uint64_t)256 << 20)
#define FILE_NAME_SIZE 40
#define FOLDER_MODE    0700
/* How much may be written for changes of flags. */
#define SAVED_BYTES_PER_MS 4096u

/* --- the table --- */

static struct mirror_repository **link_of(struct mirror_index *index, struct zt_text name)
{
    struct mirror_repository **link =
        &index->buckets[zt_xxh3(name.bytes, name.length) % MIRROR_BUCKETS];

    while (*link != NULL && !zt_text_is(name, (*link)->name))
        link = &(*link)->next;
    return link;
}

struct mirror_repository *mirror_index_find(struct mirror_index *index, struct zt_text name)
{
    assert(lock_is_held(&index->lock));
    return *link_of(index, name);
}

struct mirror_repository *mirror_index_add(struct mirror_index *index, const char *name,
                                           unsigned upstream)
{
    struct mirror_repository **link = link_of(index, zt_text_from(name));

    assert(lock_is_held(&index->lock) && strlen(name) < UPSTREAM_REPOSITORY_SIZE);
    if (*link != NULL)
        return *link;
    *link = calloc(1, sizeof(**link));
    if (*link == NULL)
        return NULL;
    strcpy((*link)->name, name);
    (*link)->upstream = upstream;
    recency_add(&index->recency, &(*link)->link);
    return *link;
}

static size_t charge_of(const struct mirror_version *version)
{
    return version->count + MIRROR_VERSION_CHARGE;
}

static void drop_version(struct mirror_index *index, struct mirror_repository *repository,
                         unsigned at)
{
    assert(at < repository->version_count);
    index->entry_count -= charge_of(repository->versions[at]);
    mirror_version_release(repository->versions[at]);
    repository->version_count--;
    memmove(repository->versions + at, repository->versions + at + 1,
            (repository->version_count - at) * sizeof(repository->versions[0]));
}

/* Names of saved files do not depend on the file system's rules for names. */
static void file_name(const char *name, char out_name[FILE_NAME_SIZE])
{
    uint64_t words[2];

    zt_xxh3_128(name, strlen(name), words);
    snprintf(out_name, FILE_NAME_SIZE, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
}

static void forget(struct mirror_index *index, struct mirror_repository *repository)
{
    char saved[FILE_NAME_SIZE];

    while (repository->version_count > 0)
        drop_version(index, repository, repository->version_count - 1);
    *link_of(index, zt_text_from(repository->name)) = repository->next;
    recency_remove(&index->recency, &repository->link);
    file_name(repository->name, saved);
    if (index->folder >= 0)
        unlinkat(index->folder, saved, 0);
    free(repository);
}

/* Forgets the repositories that were used least recently, and then older commits of this one,
 * except for the current commit and the latest addition. */
static void make_room(struct mirror_index *index, struct mirror_repository *kept)
{
    struct recency_link *link = index->recency.oldest;

    while (index->entry_count > MIRROR_ENTRIES_MAX && link != NULL) {
        struct mirror_repository *oldest = (struct mirror_repository *)link;

        link = link->newer;
        if (oldest != kept && !oldest->is_being_checked)
            forget(index, oldest);
    }
    while (index->entry_count > MIRROR_ENTRIES_MAX && kept->version_count > 2)
        drop_version(index, kept, kept->version_count - 1);
}

struct mirror_version *mirror_repository_current(const struct mirror_repository *repository)
{
    return repository->has_current ? repository->versions[0] : NULL;
}

static unsigned position_of(const struct mirror_repository *repository, struct zt_text commit)
{
    unsigned at = 0;

    while (at < repository->version_count && !zt_text_is(commit, repository->versions[at]->commit))
        at++;
    return at;
}

struct mirror_version *mirror_repository_version(const struct mirror_repository *repository,
                                                 struct zt_text commit)
{
    const unsigned at = position_of(repository, commit);

    return at < repository->version_count ? repository->versions[at] : NULL;
}

static void insert(struct mirror_repository *repository, struct mirror_version *version,
                   unsigned at)
{
    assert(repository->version_count < MIRROR_VERSIONS_MAX && at <= repository->version_count);
    memmove(repository->versions + at + 1, repository->versions + at,
            (repository->version_count - at) * sizeof(repository->versions[0]));
    repository->versions[at] = version;
    repository->version_count++;
}

void mirror_index_put(struct mirror_index *index, struct mirror_repository *repository,
                      struct mirror_version *version, bool is_current)
{
    const unsigned known = position_of(repository, zt_text_from(version->commit));
    struct mirror_version *kept = version;

    assert(lock_is_held(&index->lock));
    if (known < repository->version_count) {
        const bool was_current = known == 0 && repository->has_current;

        kept = mirror_version_hold(repository->versions[known]);
        drop_version(index, repository, known);
        mirror_version_release(version);
        repository->has_current = repository->has_current && !was_current;
        is_current = is_current || was_current;
    }
    if (repository->version_count == MIRROR_VERSIONS_MAX)
        drop_version(index, repository, repository->version_count - 1);
    insert(repository, kept, is_current || !repository->has_current ? 0 : 1);
    index->entry_count += charge_of(kept);
    repository->has_current = repository->has_current || is_current;
    recency_touch(&index->recency, &repository->link);
    make_room(index, repository);
}

bool mirror_index_has_owner(const struct mirror_index *index, struct zt_text owner)
{
    for (const struct recency_link *link = index->recency.newest; link != NULL;
         link = link->older) {
        const struct mirror_repository *repository = (const struct mirror_repository *)link;

        if (strncmp(repository->name, owner.bytes, owner.length) == 0 &&
            repository->name[owner.length] == '/')
            return true;
    }
    return false;
}

/* --- lists and marks --- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct mirror_current *)a)->name,
                  ((const struct mirror_current *)b)->name);
}

bool mirror_index_list(struct mirror_index *index, struct mirror_current **out_list,
                       size_t *out_count)
{
    struct mirror_current *list;
    size_t count = 0;

    pthread_mutex_lock(&index->lock);
    list = calloc(index->recency.count + 1, sizeof(*list));
    for (struct recency_link *link = index->recency.newest; list != NULL && link != NULL;
         link = link->older) {
        const struct mirror_repository *repository = (const struct mirror_repository *)link;

        if (!repository->has_current)
            continue;
        memcpy(list[count].name, repository->name, sizeof(list[count].name));
        list[count].upstream = repository->upstream;
        list[count].checked_s = repository->checked_s;
        list[count].is_gone_upstream = repository->is_gone_upstream;
        list[count++].version = mirror_version_hold(repository->versions[0]);
    }
    pthread_mutex_unlock(&index->lock);
    if (count > 1)
        qsort(list, count, sizeof(*list), compare_names);
    *out_list = list;
    *out_count = count;
    return list != NULL;
}

void mirror_current_free(struct mirror_current *list, size_t count)
{
    for (size_t i = 0; list != NULL && i < count; i++)
        mirror_version_release(list[i].version);
    free(list);
}

static void mark_entries(const struct mirror_version *version, const struct mirror_entry *like,
                         const uint8_t *proof, int64_t wrong_s)
{
    for (size_t i = 0; i < version->count; i++) {
        struct mirror_entry *entry = &version->entries[i];

        if (!mirror_entry_has_bytes_of(entry, like))
            continue;
        entry->is_verified = proof != NULL;
        entry->wrong_s = wrong_s != 0 ? wrong_s : entry->wrong_s;
        if (proof != NULL)
            memcpy(entry->proof, proof, sizeof(entry->proof));
    }
}

/* With the lock. wrong_s: the time if the bytes were found wrong, or 0. */
static void mark(struct mirror_index *index, const struct upstream_place *file,
                 const uint8_t *proof, int64_t wrong_s)
{
    struct mirror_entry like = {.path = file->path,
                                .etag = file->etag,
                                .size_bytes = file->size_bytes,
                                .digest_kind = file->digest_kind};
    struct mirror_repository *repository = mirror_index_find(index, zt_text_from(file->repository));

    memcpy(like.digest, file->digest, sizeof(like.digest));
    for (unsigned i = 0; repository != NULL && i < repository->version_count; i++)
        mark_entries(repository->versions[i], &like, proof, wrong_s);
    if (repository != NULL)
        repository->is_unsaved = true;
}

void mirror_index_mark(struct mirror_index *index, const struct mirror_place *place,
                       const uint8_t *proof)
{
    pthread_mutex_lock(&index->lock);
    mark(index, &place->file, proof, 0);
    pthread_mutex_unlock(&index->lock);
}

void mirror_index_note_wrong(struct mirror_index *index, const struct mirror_place *place)
{
    pthread_mutex_lock(&index->lock);
    mark(index, &place->file, NULL, clock_wall_ns() / CLOCK_NS_PER_S);
    pthread_mutex_unlock(&index->lock);
    mirror_index_save(index, place->file.repository);
}

void mirror_index_agree(struct mirror_index *index, const struct mirror_place *place,
                        const struct zt_source *source)
{
    uint8_t proof[MIRROR_PROOF_BYTES];
    bool is_verified;

    if (mirror_file_is_verified(source) == place->is_verified)
        return;
    /* With the lock: the verdict may come now, and is then marked afterwards. */
    pthread_mutex_lock(&index->lock);
    is_verified = mirror_file_proof(source, proof);
    mark(index, &place->file, is_verified ? proof : NULL, 0);
    pthread_mutex_unlock(&index->lock);
    if (is_verified)
        mirror_index_save_soon(index, place->file.repository);
    else /* before clients have any of the bytes that will come */
        mirror_index_save(index, place->file.repository);
}

void mirror_index_doubt(struct mirror_index *index, const char *name)
{
    struct mirror_repository *repository;

    pthread_mutex_lock(&index->lock);
    repository = mirror_index_find(index, zt_text_from(name));
    if (repository != NULL && clock_ms() - repository->doubted_ms >= DOUBT_MS) {
        repository->believed_until_ms = 0;
        repository->doubted_ms = clock_ms();
    }
    pthread_mutex_unlock(&index->lock);
}

/* --- on disk --- */

static void write_repository(const struct mirror_index *index,
                             const struct mirror_repository *repository, struct record_writer *out)
{
    record_write_bytes(out, MAGIC, MAGIC_BYTES);
    record_write_text(out, repository->name);
    record_write_text(out, index->upstreams[repository->upstream]);
    record_write_uint(out, repository->has_current, 1);
    record_write_uint(out, repository->version_count, 1);
    for (unsigned i = 0; i < repository->version_count; i++)
        mirror_version_write(repository->versions[i], out);
    record_write_hash(out, 0);
}

/* With the lock for saving. */
static void save(struct mirror_index *index, const char *name)
{
    struct record_writer image = {.limit_bytes = FILE_BYTES_MAX};
    struct mirror_repository *repository;
    char saved[FILE_NAME_SIZE];

    if (index->folder < 0)
        return;
    file_name(name, saved);
    pthread_mutex_lock(&index->lock);
    repository = mirror_index_find(index, zt_text_from(name));
    if (repository != NULL) {
        write_repository(index, repository, &image);
        repository->is_unsaved = false;
        repository->saved_ms = clock_ms();
        repository->saved_bytes = image.length;
    }
    pthread_mutex_unlock(&index->lock);
    if (repository != NULL && !image.failed &&
        !whole_file_replace(index->folder, saved, image.bytes, image.length))
        log_write(LOG_LEVEL_WARN, "the list of files of %s cannot be saved: %m", name);
    record_writer_free(&image);
}

void mirror_index_save(struct mirror_index *index, const char *name)
{
    pthread_mutex_lock(&index->saving);
    save(index, name);
    pthread_mutex_unlock(&index->saving);
}

/* Notes it, if is_saved also that it is on disk. Returns true if it need not be written. */
static bool note_begun(struct mirror_index *index, struct mirror_entry *entry, bool is_saved)
{
    bool is_done;

    pthread_mutex_lock(&index->lock);
    entry->is_begun = entry->is_begun || !entry->is_verified;
    entry->is_begun_saved = entry->is_begun_saved || is_saved;
    is_done = entry->is_begun_saved || !entry->is_begun;
    pthread_mutex_unlock(&index->lock);
    return is_done;
}

void mirror_index_begin(struct mirror_index *index, const char *name, struct mirror_entry *entry)
{
    if (note_begun(index, entry, false))
        return;
    /* Another thread may be writing it. */
    pthread_mutex_lock(&index->saving);
    if (!note_begun(index, entry, false)) {
        save(index, name);
        (void)note_begun(index, entry, true);
    }
    pthread_mutex_unlock(&index->saving);
}

bool mirror_index_remove(struct mirror_index *index, const char *name,
                         struct mirror_version *out_versions[MIRROR_VERSIONS_MAX],
                         unsigned *out_count)
{
    struct mirror_repository *repository;

    assert(strlen(name) < UPSTREAM_REPOSITORY_SIZE);
    /* A save in progress would write the file again. */
    pthread_mutex_lock(&index->saving);
    pthread_mutex_lock(&index->lock);
    repository = mirror_index_find(index, zt_text_from(name));
    *out_count = repository != NULL ? repository->version_count : 0;
    for (unsigned i = 0; i < *out_count; i++)
        out_versions[i] = mirror_version_hold(repository->versions[i]);
    if (repository != NULL)
        forget(index, repository);
    pthread_mutex_unlock(&index->lock);
    pthread_mutex_unlock(&index->saving);
    return repository != NULL;
}

void mirror_index_save_soon(struct mirror_index *index, const char *name)
{
    struct mirror_repository *repository;
    bool is_due = false;

    pthread_mutex_lock(&index->lock);
    repository = mirror_index_find(index, zt_text_from(name));
    if (repository != NULL) {
        repository->is_unsaved = true;
        is_due = clock_ms() - repository->saved_ms >=
                 (int64_t)(repository->saved_bytes / SAVED_BYTES_PER_MS);
    }
    pthread_mutex_unlock(&index->lock);
    if (is_due)
        mirror_index_save(index, name);
}

static unsigned upstream_of(const struct mirror_index *index, const char *url)
{
    unsigned at = 0;

    while (at < index->upstream_count && strcmp(index->upstreams[at], url) != 0)
        at++;
    return at;
}

/* Reads the versions. Returns false if the record is damaged. */
static bool read_versions(struct mirror_index *index, struct mirror_repository *repository,
                          bool has_current, unsigned count, struct record_reader *in)
{
    for (unsigned i = 0; i < count; i++) {
        struct mirror_version *version = mirror_version_read(in);

        if (version == NULL)
            return false;
        assert(repository->version_count == i);
        insert(repository, version, i);
        index->entry_count += charge_of(version);
    }
    repository->has_current = has_current && count > 0;
    return !in->failed && in->left == 0;
}

/* A repository of an upstream that is not configured any more is left alone, because it may be
 * configured again. */
static void read_repository(struct mirror_index *index, struct record_reader *in)
{
    const uint8_t *magic = record_read_bytes(in, MAGIC_BYTES);
    char *name = record_read_text(in);
    char *url = record_read_text(in);
    const bool has_current = record_read_uint(in, 1) != 0;
    const unsigned count = (unsigned)record_read_uint(in, 1);
    struct mirror_repository *repository = NULL;
    unsigned upstream = index->upstream_count;

    if (!in->failed && memcmp(magic, MAGIC, MAGIC_BYTES) == 0 && name != NULL && url != NULL &&
        strlen(name) < UPSTREAM_REPOSITORY_SIZE && count <= MIRROR_VERSIONS_MAX)
        upstream = upstream_of(index, url);
    if (upstream < index->upstream_count)
        repository = mirror_index_add(index, name, upstream);
    else if (!in->failed && url != NULL && index->foreign_count++ == 0)
        snprintf(index->foreign_url, sizeof(index->foreign_url), "%s", url);
    if (repository != NULL && repository->version_count == 0 &&
        !read_versions(index, repository, has_current, count, in))
        forget(index, repository);
    free(name);
    free(url);
}

static void read_file(struct mirror_index *index, const char *name)
{
    size_t length = 0;
    uint8_t *bytes = whole_file_read(index->folder, name, FILE_BYTES_MAX, &length);
    struct record_reader in;

    if (bytes == NULL)
        return;
    in = record_reader_checked(bytes, length);
    if (!in.failed)
        read_repository(index, &in);
    free(bytes);
}

static void read_folder(struct mirror_index *index)
{
    const int copy = openat(index->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *file;

    if (folder == NULL) {
        if (copy >= 0)
            close(copy);
        return;
    }
    pthread_mutex_lock(&index->lock);
    while ((file = readdir(folder)) != NULL)
        if (strlen(file->d_name) == 32)
            read_file(index, file->d_name);
    pthread_mutex_unlock(&index->lock);
    closedir(folder);
}

void mirror_index_open(struct mirror_index *index, const char *folder, const char *const *upstreams,
                       unsigned upstream_count)
{
    memset(index, 0, sizeof(*index));
    pthread_mutex_init(&index->lock, NULL);
    pthread_mutex_init(&index->saving, NULL);
    index->upstreams = upstreams;
    index->upstream_count = upstream_count;
    (void)mkdir(folder, FOLDER_MODE);
    index->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (index->folder < 0) {
        log_write(LOG_LEVEL_WARN, "%s: mirrored repositories are forgotten at the next start: %m",
                  folder);
        return;
    }
    read_folder(index);
    if (index->recency.count > 0)
        log_write(LOG_LEVEL_INFO, "mirrored repositories that are known: %zu",
                  index->recency.count);
    if (index->foreign_count > 0)
        log_write(LOG_LEVEL_WARN,
                  "%s: repositories of upstreams that are not configured are not served (%zu, for "
                  "example of %s)",
                  folder, index->foreign_count, index->foreign_url);
}

void mirror_index_close(struct mirror_index *index)
{
    struct recency_link *link = index->recency.newest;

    while (link != NULL) {
        struct mirror_repository *repository = (struct mirror_repository *)link;

        link = link->older;
        if (repository->is_unsaved)
            mirror_index_save(index, repository->name);
        for (unsigned i = 0; i < repository->version_count; i++)
            mirror_version_release(repository->versions[i]);
        free(repository);
    }
    if (index->folder >= 0)
        close(index->folder);
    pthread_mutex_destroy(&index->saving);
    pthread_mutex_destroy(&index->lock);
}
