/* Reading a journal back, record by record, into a session that was just made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upload/writer/writer_journal.h"
#include "upload/writer/writer_journal_kinds.h"
#include "zt/shards.h"

/* Of the journal in memory; more only for a record that is longer. */
#define WINDOW_BYTES ((size_t)1 << 20)

struct restoring {
    struct writer_session *session;
    struct record_reader *reader;
    bool has_session;
    const char *published; /* the file that was about to be, or NULL */
};

static bool get_shape(struct record_reader *reader, struct zt_shape *out_shape)
{
    uint64_t rank = record_get_uint(reader);

    *out_shape = (struct zt_shape){.stated = true, .rank = (uint8_t)rank};
    if (rank > ZT_DECLARED_RANK_MAX)
        return false;
    for (unsigned i = 0; i < rank; i++)
        out_shape->extents[i] = record_get_uint(reader);
    return !reader->failed;
}

static bool read_session(struct restoring *restoring)
{
    struct writer_session *session = restoring->session;
    struct record_reader *reader = restoring->reader;
    struct preconditions *preconditions = &session->preconditions;
    char *model;
    struct zt_text attributes;
    bool fits;

    if (record_get_uint(reader) != JOURNAL_REVISION || restoring->has_session)
        return false;
    session->target = record_get_uint(reader) == ZT_TARGET_ZT1 ? ZT_TARGET_ZT1 : ZT_TARGET_ZT2;
    session->entry.created = (time_t)record_get_uint(reader);
    model = record_get_string(reader);
    preconditions->if_match = record_get_string(reader);
    preconditions->if_none_match = record_get_string(reader);
    preconditions->if_unmodified_since = record_get_string(reader);
    attributes = record_get_text(reader);
    fits = model != NULL && model_name_is_valid((struct zt_text){model, strlen(model)});
    if (fits)
        strcpy(session->entry.model, model);
    free(model);
    restoring->has_session =
        fits && !reader->failed && writer_session_set_attributes(session, attributes);
    return restoring->has_session;
}

static bool read_object(struct restoring *restoring)
{
    struct record_reader *reader = restoring->reader;
    struct zt_text name = record_get_text(reader);
    struct zt_declaration *declaration = calloc(1, sizeof(*declaration));
    bool stated;
    bool whole;
    struct zt_text format;
    struct zt_text attributes;
    char *held;

    if (declaration == NULL)
        return false;
    stated = record_get_uint(reader) != 0;
    whole = get_shape(reader, &declaration->shape);
    format = record_get_text(reader);
    attributes = record_get_text(reader);
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
    restoring->published = NULL;
    if (writer_contents_declare(&restoring->session->contents, name, declaration))
        return true;
failed:
    zt_declaration_free(declaration);
    free(declaration);
    return false;
}

static bool get_digest(struct record_reader *reader, uint8_t out_digest[32])
{
    const uint8_t *bytes = record_get_bytes(reader, 32);

    if (bytes != NULL)
        memcpy(out_digest, bytes, 32);
    return bytes != NULL;
}

static bool read_fields(struct record_reader *reader, struct writer_component *component)
{
    component->dtype = (uint8_t)record_get_uint(reader);
    component->logical = (uint8_t)record_get_uint(reader);
    component->compressed = record_get_uint(reader) != 0;
    component->offset = record_get_uint(reader);
    component->length = record_get_uint(reader);
    component->decoded_length = record_get_uint(reader);
    return get_digest(reader, component->sha256) && get_digest(reader, component->stated) &&
           component->dtype < ZT_DTYPE_COUNT && component->logical < ZT_LOGICAL_COUNT &&
           component->offset <= INT64_MAX && component->length <= INT64_MAX;
}

static bool read_component(struct restoring *restoring)
{
    struct record_reader *reader = restoring->reader;
    struct writer_component *replaced = NULL;
    struct zt_shape shape;
    struct zt_text object = record_get_text(reader);
    struct zt_text name = record_get_text(reader);
    struct writer_component *component;

    if (!get_shape(reader, &shape))
        return false;
    component = writer_component_new(name, &shape);
    if (component == NULL)
        return false;
    if (!read_fields(reader, component) ||
        !writer_contents_put(&restoring->session->contents, object, component, &replaced)) {
        free(component);
        return false;
    }
    if (replaced != NULL)
        atomic_fetch_sub(&restoring->session->entry.received, replaced->decoded_length);
    free(replaced);
    atomic_fetch_add(&restoring->session->entry.received, component->decoded_length);
    /* It was not: the upload went on. */
    restoring->published = NULL;
    return true;
}

static bool read_outcome(struct restoring *restoring)
{
    struct writer_outcome *outcome = &restoring->session->outcome;
    struct record_reader *reader = restoring->reader;
    bool whole = get_digest(reader, outcome->sha256);
    char *etag = record_get_string(reader);

    if (etag != NULL && strlen(etag) < sizeof(outcome->etag))
        strcpy(outcome->etag, etag);
    free(etag);
    outcome->when = (time_t)record_get_uint(reader);
    restoring->session->state = WRITER_COMMITTED;
    return whole && !reader->failed;
}

static bool read_record(struct restoring *restoring, uint8_t kind)
{
    if (!restoring->has_session && kind != JOURNAL_SESSION)
        return false;
    switch (kind) {
    case JOURNAL_SESSION:
        return read_session(restoring);
    case JOURNAL_OBJECT:
        return read_object(restoring);
    case JOURNAL_COMPONENT:
        return read_component(restoring);
    case JOURNAL_PUBLISHING:
        restoring->published =
            record_get_uint(restoring->reader) != 0 ? WRITER_COMPACT : WRITER_DATA;
        return get_digest(restoring->reader, restoring->session->outcome.sha256);
    case JOURNAL_WITHDRAWN:
        restoring->published = NULL;
        return true;
    case JOURNAL_OUTCOME:
        return read_outcome(restoring);
    default:
        return false;
    }
}

/* How many of the bytes are whole records that could be read. */
static size_t read_records(struct restoring *restoring, const uint8_t *bytes, size_t length)
{
    struct record_reader reader;
    size_t at = 0;
    size_t whole;
    uint8_t kind;

    restoring->reader = &reader;
    while (record_read(bytes + at, length - at, &kind, &reader, &whole) &&
           read_record(restoring, kind))
        at += whole;
    restoring->reader = NULL;
    return at;
}

static bool has_file(const struct writer_session *session, const char *name)
{
    const struct store_ops *ops = session->server->store->ops;
    struct stored_upload *file;
    struct zt_error error;
    enum zt_status status =
        ops->kept_open(session->server->store, session->entry.id, name, &file, &error);

    if (status == ZT_OK)
        ops->abandon(file);
    return status != ZT_NOT_FOUND;
}

/* Whether the model is the file that the session announced. */
static bool is_model(const struct writer_session *session)
{
    struct store *store = session->server->store;
    char path[MODEL_NAME_MAX + sizeof(".zt")];
    struct zt_source *source;
    struct file_identity identity;
    struct zt_digest digest;
    struct zt_error error;
    bool is_same;

    snprintf(path, sizeof(path), "%s.zt", session->entry.model);
    if (store->ops->open(store, path, &source, &identity, &error) != ZT_OK)
        return false;
    is_same = zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &digest, &error) == ZT_OK &&
              memcmp(digest.bytes, session->outcome.sha256, sizeof(session->outcome.sha256)) == 0;
    zt_source_close(source);
    return is_same;
}

/* Whether the announced file was renamed out of its place and the server ended before it wrote that
 * down. Without the data that is certain; but where "compact" is missing and the data is still
 * there, the file may also have been removed after a failure, as release 0.1 did. */
static bool was_published(const struct restoring *restoring)
{
    const struct writer_session *session = restoring->session;

    if (restoring->published == NULL || has_file(session, restoring->published))
        return false;
    return !has_file(session, WRITER_DATA) || is_model(session);
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

/* Of what lies behind the components, nothing was acknowledged. */
static bool cut_data(struct writer_session *session)
{
    const struct store_ops *ops = session->server->store->ops;
    struct stored_upload *data;
    struct zt_error error;
    uint64_t end = 0;
    bool is_whole;

    if (ops->kept_open(session->server->store, session->entry.id, WRITER_DATA, &data, &error) !=
        ZT_OK)
        return false;
    writer_contents_walk(&session->contents, find_end, &end);
    is_whole = ops->length(data) >= end && ops->truncate(data, end, &error) == ZT_OK;
    ops->abandon(data);
    writer_places_skip(&session->places, end);
    return is_whole;
}

static bool settle_data(const struct restoring *restoring)
{
    struct writer_session *session = restoring->session;
    struct store *store = session->server->store;
    struct zt_error error;

    writer_places_init(&session->places, zt_target_places(session->target).data_alignment);
    if (session->state == WRITER_OPEN && was_published(restoring)) {
        session->state = WRITER_COMMITTED;
        session->outcome.when = time(NULL);
    }
    session->is_publication_announced =
        session->state == WRITER_OPEN && restoring->published != NULL;
    if (writer_journal_withdraw(session, &error))
        (void)store->ops->kept_remove(store, session->entry.id, WRITER_COMPACT, &error);
    if (session->state != WRITER_COMMITTED)
        return cut_data(session);
    (void)store->ops->kept_remove(store, session->entry.id, WRITER_DATA, &error);
    return true;
}

/* A part of the journal, long enough for the record at its start. */
struct window {
    struct zt_source *source;
    uint64_t offset;
    size_t length;
    size_t capacity;
    uint8_t *bytes;
};

/* False at the journal's end, and for want of memory. */
static bool fill_window(struct window *window, size_t wanted)
{
    uint64_t left = zt_source_size(window->source) - window->offset;
    struct zt_error error;

    if (left < wanted)
        return false;
    if (window->capacity < wanted) {
        uint8_t *bytes = realloc(window->bytes, wanted);

        if (bytes == NULL)
            return false;
        window->bytes = bytes;
        window->capacity = wanted;
    }
    window->length = left < window->capacity ? (size_t)left : window->capacity;
    return zt_source_read_at(window->source, window->offset, window->bytes, window->length,
                             &error) == ZT_OK;
}

/* Once more, where a window ends inside a record. */
static bool fill_for_record(struct window *window)
{
    uint64_t wanted;

    if (!fill_window(window, RECORD_HEAD_BYTES))
        return false;
    wanted = record_whole_length(window->bytes);
    return wanted <= window->length ||
           (wanted <= RECORD_MAX_BYTES && fill_window(window, (size_t)wanted));
}

static bool read_journal(struct restoring *restoring)
{
    struct writer_session *session = restoring->session;
    const struct store_ops *ops = session->server->store->ops;
    struct window window = {.capacity = WINDOW_BYTES};
    struct zt_error error;
    size_t used = 1;

    if (ops->kept_open(session->server->store, session->entry.id, WRITER_JOURNAL, &session->journal,
                       &error) != ZT_OK ||
        ops->read_back(session->journal, &window.source, &error) != ZT_OK)
        return false;
    window.bytes = malloc(WINDOW_BYTES);
    while (window.bytes != NULL && used > 0 && fill_for_record(&window)) {
        used = read_records(restoring, window.bytes, window.length);
        window.offset += used;
    }
    free(window.bytes);
    session->journal_end = window.offset;
    return restoring->has_session;
}

bool writer_journal_restore(struct writer_session *session)
{
    struct restoring restoring = {.session = session};

    return read_journal(&restoring) && settle_data(&restoring);
}
