/* Reads a journal back into a session, record by record, and cleans up the other files in its
 * folder. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/record.h"
#include "store/staging.h"
#include "upload/shared/kept_files.h"
#include "upload/writer/writer_journal.h"
#include "zt/digest.h"
#include "zt/shards.h"

/* Bytes of the journal in memory; only a longer record takes more. */
#define WINDOW_BYTES ((size_t)1 << 20)
#define NANOSECONDS  1000000000 /* in a second */

/* --- reading fields --- */

static uint64_t get_uint(struct record_reader *reader)
{
    return record_read_uint(reader, JOURNAL_UINT_BYTES);
}

/* Borrowed. */
static struct zt_text get_text(struct record_reader *reader)
{
    uint64_t length = get_uint(reader);
    const uint8_t *bytes =
        record_read_bytes(reader, length <= SIZE_MAX ? (size_t)length : SIZE_MAX);

    return bytes != NULL ? (struct zt_text){(const char *)bytes, (size_t)length}
                         : (struct zt_text){"", 0};
}

/* A copy; NULL for NULL. */
static char *get_string(struct record_reader *reader)
{
    struct zt_text text;
    char *copy;

    if (get_uint(reader) == 0)
        return NULL;
    text = get_text(reader);
    copy = reader->failed ? NULL : strndup(text.bytes, text.length);
    reader->failed = reader->failed || copy == NULL;
    return copy;
}

static bool get_shape(struct record_reader *reader, struct zt_shape *out_shape)
{
    uint64_t rank = get_uint(reader);

    *out_shape = (struct zt_shape){.stated = true, .rank = (uint8_t)rank};
    if (rank > ZT_DECLARED_RANK_MAX)
        return false;
    for (unsigned i = 0; i < rank; i++)
        out_shape->extents[i] = get_uint(reader);
    return !reader->failed;
}

/* Fails on a time whose nanoseconds do not fit in 64 bits. */
static time_t get_time(struct record_reader *reader)
{
    uint64_t seconds = get_uint(reader);

    if (seconds > INT64_MAX / NANOSECONDS)
        reader->failed = true;
    return reader->failed ? 0 : (time_t)seconds;
}

static bool get_digest(struct record_reader *reader, uint8_t out_digest[JOURNAL_SHA256_BYTES])
{
    const uint8_t *bytes = record_read_bytes(reader, JOURNAL_SHA256_BYTES);

    if (bytes != NULL)
        memcpy(out_digest, bytes, JOURNAL_SHA256_BYTES);
    return bytes != NULL;
}

/* --- reading records; false if the fields are not valid --- */

struct restoring {
    struct writer_session *session;
    struct record_reader reader; /* after the record's kind */
    bool has_session;
    const char *announced; /* the file that was about to be published, or NULL */
};

static bool read_session(struct restoring *restoring)
{
    struct writer_session *session = restoring->session;
    struct record_reader *reader = &restoring->reader;
    struct preconditions *preconditions = &session->preconditions;
    char *model;
    struct zt_text attributes;
    bool fits;

    if (get_uint(reader) != JOURNAL_REVISION || restoring->has_session)
        return false;
    session->target = get_uint(reader) == ZT_TARGET_ZT1 ? ZT_TARGET_ZT1 : ZT_TARGET_ZT2;
    session->kept.entry.created = get_time(reader);
    model = get_string(reader);
    preconditions->if_match = get_string(reader);
    preconditions->if_none_match = get_string(reader);
    preconditions->if_unmodified_since = get_string(reader);
    attributes = get_text(reader);
    fits = model != NULL && model_name_is_plain(zt_text_from(model));
    if (fits)
        strcpy(session->kept.entry.model, model);
    free(model);
    restoring->has_session =
        fits && !reader->failed && writer_session_set_attributes(session, attributes);
    return restoring->has_session;
}

static bool read_object(struct restoring *restoring)
{
    struct record_reader *reader = &restoring->reader;
    struct zt_text name = get_text(reader);
    struct zt_declaration *declaration = calloc(1, sizeof(*declaration));
    bool stated;
    bool whole;
    struct zt_text format;
    struct zt_text attributes;
    char *held;

    if (declaration == NULL)
        return false;
    stated = get_uint(reader) != 0;
    whole = get_shape(reader, &declaration->shape);
    format = get_text(reader);
    attributes = get_text(reader);
    held = malloc(format.length + attributes.length + 1);
    declaration->held = held;
    declaration->target = restoring->session->target;
    declaration->shape.stated = stated;
    if (!whole || reader->failed || held == NULL)
        goto failed;
    memcpy(held, attributes.bytes, attributes.length);
    memcpy(held + attributes.length, format.bytes, format.length);
    declaration->attributes = (struct zt_text){held, attributes.length};
    declaration->format = (struct zt_text){held + attributes.length, format.length};
    if (writer_contents_declare(&restoring->session->contents, name, declaration))
        return true;
failed:
    zt_declaration_free(declaration);
    free(declaration);
    return false;
}

static bool read_component_fields(struct record_reader *reader, struct writer_component *component)
{
    component->dtype = (uint8_t)get_uint(reader);
    component->logical = (uint8_t)get_uint(reader);
    component->compressed = get_uint(reader) != 0;
    component->offset = get_uint(reader);
    component->length = get_uint(reader);
    component->decoded_length = get_uint(reader);
    return get_digest(reader, component->sha256) && get_digest(reader, component->stated) &&
           component->dtype < ZT_DTYPE_COUNT && component->logical < ZT_LOGICAL_COUNT &&
           component->offset <= INT64_MAX && component->length <= INT64_MAX;
}

static bool read_component(struct restoring *restoring)
{
    struct record_reader *reader = &restoring->reader;
    atomic_uint_fast64_t *received = &restoring->session->kept.entry.received;
    struct writer_component *replaced = NULL;
    struct zt_shape shape;
    struct zt_text object = get_text(reader);
    struct zt_text name = get_text(reader);
    struct writer_component *component;

    if (!get_shape(reader, &shape))
        return false;
    component = writer_component_new(name, &shape);
    if (component == NULL)
        return false;
    if (!read_component_fields(reader, component) ||
        !writer_contents_put(&restoring->session->contents, object, component, &replaced)) {
        free(component);
        return false;
    }
    if (replaced != NULL)
        atomic_fetch_sub(received, replaced->decoded_length);
    free(replaced);
    atomic_fetch_add(received, component->decoded_length);
    return true;
}

static bool read_announced(struct restoring *restoring)
{
    restoring->announced = get_uint(&restoring->reader) != 0 ? WRITER_COMPACT : WRITER_DATA;
    return get_digest(&restoring->reader, restoring->session->published.sha256);
}

static bool read_outcome(struct restoring *restoring)
{
    struct writer_session *session = restoring->session;
    struct record_reader *reader = &restoring->reader;
    bool whole = get_digest(reader, session->published.sha256);
    char *etag = get_string(reader);

    if (etag != NULL && strlen(etag) < sizeof(session->published.etag))
        strcpy(session->published.etag, etag);
    free(etag);
    session->committed = get_time(reader);
    if (!whole || reader->failed)
        return false;
    session->state = WRITER_COMMITTED;
    return true;
}

static bool read_record(struct restoring *restoring, uint8_t kind)
{
    if (!restoring->has_session && kind != JOURNAL_SESSION)
        return false;
    switch (kind) {
    case JOURNAL_SESSION:
        return read_session(restoring);
    case JOURNAL_ANNOUNCED:
        return read_announced(restoring);
    case JOURNAL_OUTCOME:
        return read_outcome(restoring);
    default:
        break;
    }
    /* A later acknowledged step shows that the announced publication failed. */
    restoring->announced = NULL;
    return kind == JOURNAL_WITHDRAWN || (kind == JOURNAL_OBJECT && read_object(restoring)) ||
           (kind == JOURNAL_COMPONENT && read_component(restoring));
}

/* The length of the whole, valid records at the start of the bytes. */
static size_t read_records(struct restoring *restoring, const uint8_t *bytes, size_t length)
{
    size_t at = 0;

    while (length - at >= JOURNAL_HEAD_BYTES) {
        size_t body = zt_load_le32(bytes + at);
        const uint8_t *begin = bytes + at + JOURNAL_HEAD_BYTES;

        if (body == 0 || body > length - at - JOURNAL_HEAD_BYTES ||
            zt_load_le32(bytes + at + 4) != zt_crc32c(0, begin, body))
            break;
        restoring->reader = (struct record_reader){.at = begin + 1, .left = body - 1};
        if (!read_record(restoring, begin[0]))
            break;
        at += JOURNAL_HEAD_BYTES + body;
    }
    assert(at <= length);
    return at;
}

/* --- reading the file --- */

/* A part of the journal, with the whole record at its start. */
struct window {
    struct zt_source *source;
    uint64_t offset;
    size_t length;
    size_t capacity;
    uint8_t *bytes;
};

static enum zt_status fill(struct window *window, size_t wanted, struct zt_error *error)
{
    uint64_t left = zt_source_size(window->source) - window->offset;

    assert(window->offset <= zt_source_size(window->source) && wanted > 0);
    if (window->capacity < wanted) {
        uint8_t *bytes = realloc(window->bytes, wanted);

        if (bytes == NULL)
            return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a journal");
        window->bytes = bytes;
        window->capacity = wanted;
    }
    window->length = left < window->capacity ? (size_t)left : window->capacity;
    return zt_source_read_at(window->source, window->offset, window->bytes, window->length, error);
}

/* Reads more if the window ends inside its first record. */
static enum zt_status fill_for_record(struct window *window, struct zt_error *error)
{
    enum zt_status status = fill(window, WINDOW_BYTES, error);
    size_t wanted;

    if (status != ZT_OK || window->length < JOURNAL_HEAD_BYTES)
        return status;
    wanted = JOURNAL_HEAD_BYTES + (size_t)zt_load_le32(window->bytes);
    if (wanted <= window->length || wanted > JOURNAL_RECORD_MAX_BYTES)
        return ZT_OK;
    return fill(window, wanted, error);
}

static enum zt_status read_journal(struct restoring *restoring, struct zt_error *error)
{
    struct writer_session *session = restoring->session;
    struct window window = {.offset = 0};
    enum zt_status status = staged_file_read_back(session->journal, &window.source, error);
    size_t used;

    if (status != ZT_OK)
        return status;
    do {
        status = fill_for_record(&window, error);
        used = status == ZT_OK ? read_records(restoring, window.bytes, window.length) : 0;
        window.offset += used;
    } while (used > 0);
    free(window.bytes);
    session->journal_end = window.offset;
    return status;
}

/* --- the other files, according to the journal --- */

static bool has_file(const struct writer_session *session, const char *name)
{
    struct staged_file *file;
    struct zt_error error;
    enum zt_status status = staging_folder_open(session->kept.server->store->staging,
                                                session->kept.entry.id, name, &file, &error);

    if (status == ZT_OK)
        staged_file_close(file);
    return status != ZT_NOT_FOUND;
}

/* Returns true if the model is the file that the session announced. */
static bool is_model(const struct writer_session *session)
{
    struct store *store = session->kept.server->store;
    char path[MODEL_NAME_MAX + sizeof(".zt")];
    struct zt_source *source;
    struct file_identity identity;
    struct zt_digest digest;
    struct zt_error error;
    bool is_same;

    assert(session->kept.entry.model[0] != '\0');
    snprintf(path, sizeof(path), "%s.zt", session->kept.entry.model);
    if (store->ops->open(store, path, &source, &identity, &error) != ZT_OK)
        return false;
    is_same = zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &digest, &error) == ZT_OK &&
              memcmp(digest.bytes, session->published.sha256, JOURNAL_SHA256_BYTES) == 0;
    zt_source_close(source);
    return is_same;
}

/* Returns true if the announced file became the model and the server ended before it recorded that.
 * If neither it nor "data" exists, that is certain. Otherwise the digest decides: where publication
 * is a link, the file has both names for a moment, and release 0.1 removed "compact" after a
 * failure. */
static bool was_published(const struct restoring *restoring)
{
    const struct writer_session *session = restoring->session;

    if (restoring->announced == NULL)
        return false;
    return (!has_file(session, restoring->announced) && !has_file(session, WRITER_DATA)) ||
           is_model(session);
}

static bool find_end(void *context, const struct writer_object *object)
{
    uint64_t *data_end = context;

    for (const struct writer_component *one = object->components; one != NULL; one = one->next) {
        uint64_t end = one->offset + one->length;

        *data_end = one->length > 0 && end > *data_end ? end : *data_end;
    }
    return true;
}

/* Bytes after the components were never acknowledged. */
static enum kept_opened cut_data(struct writer_session *session)
{
    struct staged_file *data;
    struct zt_error error;
    uint64_t end = 0;
    enum kept_opened opened = KEPT_OPENED;
    enum zt_status status = staging_folder_open(session->kept.server->store->staging,
                                                session->kept.entry.id, WRITER_DATA, &data, &error);

    assert(session->state == WRITER_OPEN);
    if (status != ZT_OK)
        return kept_opened_by(status);
    writer_contents_walk(&session->contents, find_end, &end);
    if (staged_file_length(data) < end)
        opened = KEPT_NOT_OURS;
    else if (staged_file_truncate(data, end, &error) != ZT_OK)
        opened = KEPT_UNREADABLE;
    staged_file_close(data);
    writer_places_skip(&session->places, end);
    return opened;
}

/* Removes the file that the session's state does not need. */
static enum kept_opened tidy_files(const struct restoring *restoring)
{
    struct writer_session *session = restoring->session;
    struct store *store = session->kept.server->store;
    struct zt_error error;

    assert(restoring->has_session);
    writer_places_init(&session->places, zt_target_places(session->target).data_alignment);
    if (session->state == WRITER_OPEN && was_published(restoring)) {
        session->state = WRITER_COMMITTED;
        session->committed = time(NULL);
    }
    /* The process that published it may have failed to sync the folder. */
    if (session->state == WRITER_COMMITTED)
        session->committed_ms = kept_upload_ms_of(session->committed);
    session->published.remains.is_unsynced = session->state == WRITER_COMMITTED;
    session->is_publication_announced =
        session->state == WRITER_OPEN && restoring->announced != NULL;
    if (writer_journal_withdraw(session, &error))
        (void)staging_folder_remove(store->staging, session->kept.entry.id, WRITER_COMPACT, &error);
    if (session->state == WRITER_OPEN)
        return cut_data(session);
    (void)staging_folder_remove(store->staging, session->kept.entry.id, WRITER_DATA, &error);
    writer_journal_close(session);
    return KEPT_OUTCOME;
}

static enum kept_opened restore(struct writer_session *session)
{
    struct restoring restoring = {.session = session};
    struct zt_error error;
    enum zt_status status =
        staging_folder_open(session->kept.server->store->staging, session->kept.entry.id,
                            WRITER_JOURNAL, &session->journal, &error);

    if (status == ZT_OK)
        status = read_journal(&restoring, &error);
    if (status != ZT_OK)
        return kept_opened_by(status);
    return restoring.has_session ? tidy_files(&restoring) : KEPT_NOT_OURS;
}

enum kept_opened writer_journal_open(struct server *server, const char *id,
                                     struct kept_upload **out_upload)
{
    struct writer_session *session = writer_session_new(server, id);
    enum kept_opened opened = session != NULL ? restore(session) : KEPT_UNREADABLE;

    if (opened == KEPT_NOT_OURS || opened == KEPT_UNREADABLE)
        kept_upload_release(session);
    else
        *out_upload = &session->kept;
    return opened;
}
