/* What was found out, kept across restarts: one small binary file a model in the state folder's "verified", named after
 * the hash of its path.
 *
 * Little-endian: magic, identity (inode, size, modified, changed), ETag, count of components, count of failures, a byte
 * a component (its state; the highest bit where its content breaks a rule), the failures, XXH3-64 of all before.
 * Written beside and renamed; read with every length checked. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/verification.h"
#include "runtime/log.h"
#include "zt/digest.h"

#define FOLDER_NAME "verified"
/* The last digit is the version of this form. */
#define MAGIC "ZTSVFY02"
/* XXH3-128 in hex and NUL. */
#define NAME_SIZE   33
#define NEW_PREFIX  ".new-"
#define HEADER_SIZE (8 + 4 * 8 + GENERATION_ETAG_SIZE + 4 + 4)
#define HASH_SIZE   8
/* More than a file of 100 million components has. */
#define FILE_MAX_BYTES ((uint64_t)1 << 28)
#define TEXT_ABSENT    UINT32_MAX
#define BROKEN         0x80

static void name_of(const char *path, char out_name[NAME_SIZE])
{
    uint64_t words[2];

    zt_xxh3_128(path, strlen(path), words);
    snprintf(out_name, NAME_SIZE, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
}

void verification_folder_open(struct verification_folder *folder, int state_folder)
{
    pthread_mutex_init(&folder->lock, NULL);
    folder->descriptor = -1;
    if (state_folder < 0 || (mkdirat(state_folder, FOLDER_NAME, 0700) != 0 && errno != EEXIST))
        return;
    folder->descriptor = openat(state_folder, FOLDER_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

void verification_folder_close(struct verification_folder *folder)
{
    if (folder->descriptor >= 0)
        close(folder->descriptor);
    pthread_mutex_destroy(&folder->lock);
}

/* --- writing --- */

struct image {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    bool failed;
};

static void put(struct image *image, const void *bytes, size_t length)
{
    if (image->failed || length == 0)
        return;
    if (length > image->capacity - image->length) {
        size_t capacity = (image->length + length) * 2;
        uint8_t *grown = realloc(image->bytes, capacity);

        if (grown == NULL) {
            image->failed = true;
            return;
        }
        image->bytes = grown;
        image->capacity = capacity;
    }
    memcpy(image->bytes + image->length, bytes, length);
    image->length += length;
}

static void put_number(struct image *image, uint64_t number, size_t width)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    put(image, bytes, width);
}

static void put_text(struct image *image, const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;

    put_number(image, text != NULL ? length : TEXT_ABSENT, 4);
    put(image, text, length);
}

static void put_failure(struct image *image, const struct failure *failure)
{
    put_number(image, failure->object, 4);
    put_number(image, failure->component, 4);
    put_text(image, failure->expected);
    put_text(image, failure->actual);
    put_text(image, failure->rule);
    put_text(image, failure->detail);
}

static void put_header(struct image *image, const struct generation *generation, uint32_t failure_count)
{
    const struct file_identity *identity = &generation->identity;

    put(image, MAGIC, 8);
    put_number(image, identity->inode, 8);
    put_number(image, identity->size_bytes, 8);
    put_number(image, (uint64_t)identity->modified_ns, 8);
    put_number(image, (uint64_t)identity->changed_ns, 8);
    put(image, generation->etag, GENERATION_ETAG_SIZE);
    put_number(image, generation->model->component_count, 4);
    put_number(image, failure_count, 4);
}

static void make_image(struct generation *generation, struct image *image)
{
    struct verification *verification = generation->verification;

    pthread_mutex_lock(&verification->lock);
    put_header(image, generation, verification->failure_count);
    for (uint32_t i = 0; i < generation->model->component_count; i++) {
        uint8_t state = atomic_load(&generation->states[i]);

        state |= verification->broken[i] ? BROKEN : 0;
        put(image, &state, 1);
    }
    for (const struct failure *failure = verification->failures; failure != NULL; failure = failure->next)
        put_failure(image, failure);
    pthread_mutex_unlock(&verification->lock);
    if (!image->failed)
        put_number(image, zt_xxh3(image->bytes, image->length), HASH_SIZE);
}

static bool write_file(int folder, const char *name, const struct image *image)
{
    int descriptor = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t at = 0;

    if (descriptor < 0)
        return false;
    while (at < image->length) {
        ssize_t wrote = write(descriptor, image->bytes + at, image->length - at);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break;
        at += (size_t)wrote;
    }
    return close(descriptor) == 0 && at == image->length;
}

void verification_save(struct verification_folder *folder, struct generation *generation)
{
    struct image image = {NULL, 0, 0, false};
    char name[NAME_SIZE];
    char fresh[NAME_SIZE + sizeof NEW_PREFIX];

    if (folder->descriptor < 0 || atomic_load(&generation->retired))
        return;
    make_image(generation, &image);
    name_of(generation->path, name);
    snprintf(fresh, sizeof fresh, "%s%s", NEW_PREFIX, name);
    pthread_mutex_lock(&folder->lock);
    /* No fsync: what a power cut tears is told by the hash and found out anew. */
    if (image.failed || !write_file(folder->descriptor, fresh, &image) ||
        renameat(folder->descriptor, fresh, folder->descriptor, name) != 0) {
        log_write(LOG_LEVEL_WARN, "what is verified of %s cannot be written down: %s", generation->path,
                  strerror(errno));
        unlinkat(folder->descriptor, fresh, 0);
    }
    pthread_mutex_unlock(&folder->lock);
    free(image.bytes);
}

/* --- reading --- */

struct cursor {
    const uint8_t *at;
    size_t left;
    bool failed;
};

static const uint8_t *take(struct cursor *cursor, size_t length)
{
    const uint8_t *at = cursor->at;

    if (cursor->failed || length > cursor->left) {
        cursor->failed = true;
        return NULL;
    }
    cursor->at += length;
    cursor->left -= length;
    return at;
}

static uint64_t take_number(struct cursor *cursor, size_t width)
{
    const uint8_t *bytes = take(cursor, width);
    uint64_t number = 0;

    for (size_t i = 0; bytes != NULL && i < width; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

/* A text of its own, to be freed; NULL for an absent one and on failure. */
static char *take_text(struct cursor *cursor)
{
    uint32_t length = (uint32_t)take_number(cursor, 4);
    const uint8_t *bytes;
    char *text;

    if (cursor->failed || length == TEXT_ABSENT)
        return NULL;
    bytes = take(cursor, length);
    text = bytes == NULL ? NULL : strndup((const char *)bytes, length);
    cursor->failed = text == NULL;
    return text;
}

static bool take_header(struct cursor *cursor, const struct generation *generation, uint32_t *out_failures)
{
    struct image wanted = {NULL, 0, 0, false};
    const uint8_t *header = take(cursor, HEADER_SIZE - 4);
    bool same;

    put_header(&wanted, generation, 0);
    same = header != NULL && !wanted.failed && wanted.length == HEADER_SIZE &&
           memcmp(header, wanted.bytes, HEADER_SIZE - 4) == 0;
    free(wanted.bytes);
    *out_failures = (uint32_t)take_number(cursor, 4);
    return same && !cursor->failed && *out_failures <= FAILURES_MAX;
}

static bool take_failure(struct cursor *cursor, struct generation *generation)
{
    const struct zt_model *model = generation->model;
    struct failure failure = {.object = (uint32_t)take_number(cursor, 4)};

    failure.component = (uint32_t)take_number(cursor, 4);
    failure.expected = take_text(cursor);
    failure.actual = take_text(cursor);
    failure.rule = take_text(cursor);
    failure.detail = take_text(cursor);
    cursor->failed = cursor->failed || failure.object >= model->object_count ||
                     (failure.component != NO_COMPONENT && failure.component >= model->component_count) ||
                     !verification_add_failure(generation->verification, &failure);
    free(failure.expected);
    free(failure.actual);
    free(failure.rule);
    free(failure.detail);
    return !cursor->failed;
}

/* Nobody else has the generation yet, so no lock is needed. */
static void recall_image(const uint8_t *bytes, size_t length, struct generation *generation)
{
    struct cursor cursor = {bytes, length, false};
    uint32_t count = generation->model->component_count;
    uint32_t failures = 0;
    const uint8_t *states;

    if (!take_header(&cursor, generation, &failures))
        return;
    states = take(&cursor, count);
    if (states == NULL)
        return;
    for (uint32_t i = 0; i < failures; i++) {
        if (!take_failure(&cursor, generation))
            return;
    }
    /* Only verdicts about what can be judged; the rest is told anew each time. */
    for (uint32_t i = 0; i < count; i++) {
        enum component_state state = states[i] & ~BROKEN;
        bool verdict = state == COMPONENT_VERIFIED || state == COMPONENT_CORRUPT;

        verification_set_broken(generation, i, (states[i] & BROKEN) != 0);
        if (verdict && atomic_load(&generation->states[i]) == COMPONENT_UNCHECKED)
            verification_set(generation, i, state);
    }
}

static uint8_t *read_file(int folder, const char *name, size_t *out_length)
{
    int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat facts;
    uint8_t *bytes = NULL;
    bool whole = false;

    if (descriptor < 0)
        return NULL;
    if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size >= HEADER_SIZE + HASH_SIZE &&
        (uint64_t)facts.st_size <= FILE_MAX_BYTES)
        bytes = malloc((size_t)facts.st_size);
    if (bytes != NULL)
        whole = read(descriptor, bytes, (size_t)facts.st_size) == (ssize_t)facts.st_size;
    close(descriptor);
    if (!whole) {
        free(bytes);
        return NULL;
    }
    *out_length = (size_t)facts.st_size;
    return bytes;
}

void verification_recall(struct verification_folder *folder, struct generation *generation)
{
    char name[NAME_SIZE];
    size_t length = 0;
    uint8_t *bytes;
    struct cursor tail;

    if (folder->descriptor < 0)
        return;
    name_of(generation->path, name);
    bytes = read_file(folder->descriptor, name, &length);
    if (bytes == NULL)
        return;
    tail = (struct cursor){bytes + length - HASH_SIZE, HASH_SIZE, false};
    if (take_number(&tail, HASH_SIZE) == zt_xxh3(bytes, length - HASH_SIZE))
        recall_image(bytes, length - HASH_SIZE, generation);
    free(bytes);
}

/* --- forgetting --- */

static int compare_names(const void *a, const void *b)
{
    return memcmp(a, b, NAME_SIZE);
}

static bool is_ours(const char *name)
{
    return strncmp(name, NEW_PREFIX, strlen(NEW_PREFIX)) == 0 ||
           (strlen(name) == NAME_SIZE - 1 && strspn(name, "0123456789abcdef") == NAME_SIZE - 1);
}

static void sweep_folder(int folder, const char (*names)[NAME_SIZE], size_t count)
{
    int descriptor = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;

    if (stream == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    while ((entry = readdir(stream)) != NULL) {
        char name[NAME_SIZE];

        if (!is_ours(entry->d_name))
            continue;
        snprintf(name, sizeof name, "%.*s", NAME_SIZE - 1, entry->d_name);
        if (count == 0 || bsearch(name, names, count, NAME_SIZE, compare_names) == NULL)
            unlinkat(folder, entry->d_name, 0);
    }
    closedir(stream);
}

void verification_sweep(struct verification_folder *folder, const char *const *paths, size_t count)
{
    char(*names)[NAME_SIZE];

    if (folder->descriptor < 0)
        return;
    names = calloc(count + 1, NAME_SIZE);
    if (names == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        name_of(paths[i], names[i]);
    qsort(names, count, NAME_SIZE, compare_names);
    pthread_mutex_lock(&folder->lock);
    sweep_folder(folder->descriptor, (const char(*)[NAME_SIZE])names, count);
    pthread_mutex_unlock(&folder->lock);
    free(names);
}
