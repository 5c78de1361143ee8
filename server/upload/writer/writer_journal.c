/* Appending to the journal. A record is written over the end of the one before; what is behind an
 * end is nothing. */
#include "upload/writer/writer_journal.h"

#include <string.h>

#include "upload/writer/writer_journal_kinds.h"

static const struct store_ops *ops_of(const struct writer_session *session)
{
    return session->server->store->ops;
}

static bool append(struct writer_session *session, struct record *record, struct zt_error *error)
{
    bool closed = record_close(record);
    enum zt_status status = ZT_OK;

    if (!closed)
        status = zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a record");
    if (status == ZT_OK)
        status = ops_of(session)->write_at(session->journal, session->journal_end, record->bytes,
                                           record->length, error);
    if (status == ZT_OK)
        status = ops_of(session)->sync(session->journal, error);
    if (status == ZT_OK)
        session->journal_end += record->length - RECORD_END_BYTES;
    record_free(record);
    return status == ZT_OK;
}

static void put_shape(struct record *record, const uint64_t *extents, unsigned rank)
{
    record_put_uint(record, rank);
    for (unsigned i = 0; i < rank; i++)
        record_put_uint(record, extents[i]);
}

bool writer_journal_begin(struct writer_session *session, struct zt_error *error)
{
    const struct registry_entry *entry = &session->entry;
    struct record record;

    if (ops_of(session)->kept_create(session->server->store, entry->id, WRITER_JOURNAL, 0,
                                     &session->journal, error) != ZT_OK)
        return false;
    record_begin(&record, JOURNAL_SESSION);
    record_put_uint(&record, JOURNAL_REVISION);
    record_put_uint(&record, session->target);
    record_put_uint(&record, (uint64_t)entry->created);
    record_put_string(&record, entry->model);
    record_put_string(&record, session->preconditions.if_match);
    record_put_string(&record, session->preconditions.if_none_match);
    record_put_string(&record, session->preconditions.if_unmodified_since);
    record_put_text(&record, session->attributes);
    return append(session, &record, error);
}

bool writer_journal_declare(struct writer_session *session, struct zt_text object,
                            const struct zt_declaration *declaration, struct zt_error *error)
{
    struct record record;

    record_begin(&record, JOURNAL_OBJECT);
    record_put_text(&record, object);
    record_put_uint(&record, declaration->shape.stated);
    put_shape(&record, declaration->shape.extents, declaration->shape.rank);
    record_put_text(&record, declaration->format);
    record_put_text(&record, declaration->attributes);
    return append(session, &record, error);
}

bool writer_journal_put(struct writer_session *session, struct zt_text object,
                        const struct writer_component *component, struct zt_error *error)
{
    struct record record;

    record_begin(&record, JOURNAL_COMPONENT);
    record_put_text(&record, object);
    record_put_text(&record, writer_component_name(component));
    put_shape(&record, component->extents, component->rank);
    record_put_uint(&record, component->dtype);
    record_put_uint(&record, component->logical);
    record_put_uint(&record, component->compressed);
    record_put_uint(&record, component->offset);
    record_put_uint(&record, component->length);
    record_put_uint(&record, component->decoded_length);
    record_put_bytes(&record, component->sha256, sizeof(component->sha256));
    record_put_bytes(&record, component->stated, sizeof(component->stated));
    return append(session, &record, error);
}

bool writer_journal_publish(struct writer_session *session, const char *file,
                            const uint8_t sha256[32], struct zt_error *error)
{
    struct record record;

    record_begin(&record, JOURNAL_PUBLISHING);
    record_put_uint(&record, strcmp(file, WRITER_COMPACT) == 0);
    record_put_bytes(&record, sha256, sizeof(session->outcome.sha256));
    session->is_publication_announced = true;
    return append(session, &record, error);
}

bool writer_journal_withdraw(struct writer_session *session, struct zt_error *error)
{
    struct record record;

    if (!session->is_publication_announced)
        return true;
    record_begin(&record, JOURNAL_WITHDRAWN);
    session->is_publication_announced = !append(session, &record, error);
    return !session->is_publication_announced;
}

bool writer_journal_outcome(struct writer_session *session, struct zt_error *error)
{
    struct record record;

    record_begin(&record, JOURNAL_OUTCOME);
    record_put_bytes(&record, session->outcome.sha256, sizeof(session->outcome.sha256));
    record_put_string(&record, session->outcome.etag);
    record_put_uint(&record, (uint64_t)session->outcome.when);
    return append(session, &record, error);
}
