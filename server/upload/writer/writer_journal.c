/* Writes the journal. A record overwrites the end mark of the previous one. */
#include "upload/writer/writer_journal.h"

#include <assert.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/record.h"
#include "disk/open_files.h"
#include "store/staging.h"
#include "zt/digest.h"

/* --- writing --- */

static void begin_record(struct record_writer *record, enum journal_kind kind)
{
    static const uint8_t head[JOURNAL_HEAD_BYTES] = {0};

    assert(kind >= JOURNAL_SESSION && kind <= JOURNAL_WITHDRAWN);
    *record = (struct record_writer){.limit_bytes = JOURNAL_RECORD_MAX_BYTES};
    record_write_bytes(record, head, sizeof(head));
    record_write_uint(record, kind, 1);
}

static void put_uint(struct record_writer *record, uint64_t value)
{
    record_write_uint(record, value, JOURNAL_UINT_BYTES);
}

static void put_text(struct record_writer *record, struct zt_text text)
{
    put_uint(record, text.length);
    record_write_bytes(record, text.bytes, text.length);
}

/* Distinguishes NULL from "". */
static void put_string(struct record_writer *record, const char *text)
{
    put_uint(record, text != NULL);
    if (text != NULL)
        put_text(record, zt_text_from(text));
}

static void put_shape(struct record_writer *record, const uint64_t *extents, unsigned rank)
{
    assert(rank <= ZT_DECLARED_RANK_MAX);
    put_uint(record, rank);
    for (unsigned i = 0; i < rank; i++)
        put_uint(record, extents[i]);
}

/* Head and end mark. */
static bool close_record(struct record_writer *record)
{
    static const uint8_t end[JOURNAL_END_BYTES] = {0};
    size_t length = record->length - JOURNAL_HEAD_BYTES;

    assert(record->failed || record->length > JOURNAL_HEAD_BYTES);
    record_write_bytes(record, end, sizeof(end));
    if (record->failed)
        return false;
    zt_store_le32(record->bytes, (uint32_t)length);
    zt_store_le32(record->bytes + 4, zt_crc32c(0, record->bytes + JOURNAL_HEAD_BYTES, length));
    return true;
}

/* A descriptor that has reported an error cannot be trusted. All records before the failed one are
 * durable, and the next record overwrites it, through a new descriptor. */
void writer_journal_close(struct writer_session *session)
{
    staged_file_close(session->journal);
    session->journal = NULL;
}

static bool append(struct writer_session *session, struct record_writer *record,
                   struct zt_error *error)
{
    bool closed = close_record(record);
    enum zt_status status = ZT_OK;

    if (!closed)
        status = zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a record");
    if (status == ZT_OK && session->journal == NULL)
        status = staging_folder_open(session->kept.server->store->staging, session->kept.entry.id,
                                     WRITER_JOURNAL, &session->journal, error);
    if (status == ZT_OK)
        status = staged_file_write_at(session->journal, session->journal_end, record->bytes,
                                      record->length, error);
    if (status == ZT_OK)
        status = staged_file_sync(session->journal, error);
    if (status == ZT_OK)
        session->journal_end += record->length - JOURNAL_END_BYTES;
    /* Waiting uploads must not prevent new ones. */
    if (status != ZT_OK || open_files_are_scarce())
        writer_journal_close(session);
    record_writer_free(record);
    return status == ZT_OK;
}

bool writer_journal_begin(struct writer_session *session, struct zt_error *error)
{
    const struct registry_entry *entry = &session->kept.entry;
    struct record_writer record;

    assert(session->journal == NULL && session->journal_end == 0);
    if (staging_folder_create(session->kept.server->store->staging, entry->id, WRITER_JOURNAL, 0,
                              &session->journal, error) != ZT_OK)
        return false;
    begin_record(&record, JOURNAL_SESSION);
    put_uint(&record, JOURNAL_REVISION);
    put_uint(&record, session->target);
    put_uint(&record, (uint64_t)entry->created);
    put_string(&record, entry->model);
    put_string(&record, session->preconditions.if_match);
    put_string(&record, session->preconditions.if_none_match);
    put_string(&record, session->preconditions.if_unmodified_since);
    put_text(&record, session->attributes);
    return append(session, &record, error);
}

bool writer_journal_declare(struct writer_session *session, struct zt_text object,
                            const struct zt_declaration *declaration, struct zt_error *error)
{
    struct record_writer record;

    assert(session->journal_end > 0);
    begin_record(&record, JOURNAL_OBJECT);
    put_text(&record, object);
    put_uint(&record, declaration->shape.stated);
    put_shape(&record, declaration->shape.extents, declaration->shape.rank);
    put_text(&record, declaration->format);
    put_text(&record, declaration->attributes);
    return append(session, &record, error);
}

bool writer_journal_put(struct writer_session *session, struct zt_text object,
                        const struct writer_component *component, struct zt_error *error)
{
    struct record_writer record;

    assert(component->dtype < ZT_DTYPE_COUNT && component->logical < ZT_LOGICAL_COUNT);
    assert(session->journal_end > 0);
    begin_record(&record, JOURNAL_COMPONENT);
    put_text(&record, object);
    put_text(&record, writer_component_name(component));
    put_shape(&record, component->extents, component->rank);
    put_uint(&record, component->dtype);
    put_uint(&record, component->logical);
    put_uint(&record, component->compressed);
    put_uint(&record, component->offset);
    put_uint(&record, component->length);
    put_uint(&record, component->decoded_length);
    record_write_bytes(&record, component->sha256, sizeof(component->sha256));
    record_write_bytes(&record, component->stated, sizeof(component->stated));
    return append(session, &record, error);
}

bool writer_journal_announce(struct writer_session *session, const char *file,
                             const uint8_t sha256[32], struct zt_error *error)
{
    struct record_writer record;

    assert(session->journal_end > 0);
    begin_record(&record, JOURNAL_ANNOUNCED);
    put_uint(&record, strcmp(file, WRITER_COMPACT) == 0);
    record_write_bytes(&record, sha256, JOURNAL_SHA256_BYTES);
    /* Set even if this fails: the record may be on disk nevertheless. */
    session->is_publication_announced = true;
    return append(session, &record, error);
}

bool writer_journal_withdraw(struct writer_session *session, struct zt_error *error)
{
    struct record_writer record;

    if (!session->is_publication_announced)
        return true;
    assert(session->journal_end > 0);
    begin_record(&record, JOURNAL_WITHDRAWN);
    session->is_publication_announced = !append(session, &record, error);
    return !session->is_publication_announced;
}

bool writer_journal_outcome(struct writer_session *session, struct zt_error *error)
{
    struct record_writer record;

    assert(session->journal_end > 0);
    begin_record(&record, JOURNAL_OUTCOME);
    record_write_bytes(&record, session->published.sha256, JOURNAL_SHA256_BYTES);
    put_string(&record, session->published.etag);
    put_uint(&record, (uint64_t)session->committed);
    return append(session, &record, error);
}
