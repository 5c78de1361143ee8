/* The journal of a streaming writer's upload: one record for each acknowledged step.
 *
 * A record is a length (4 bytes, of kind and fields), a CRC-32C of what follows, a kind (1 byte)
 * and fields: little-endian numbers of 8 bytes, texts preceded by their length, digests. The
 * journal ends at a length of 0, or at a damaged record, which was never acknowledged. */
#ifndef UPLOAD_WRITER_WRITER_JOURNAL_H
#define UPLOAD_WRITER_WRITER_JOURNAL_H

#include "upload/writer/writer_session.h"

/* --- the format, for writing and reading it --- */

/* The revision of the fields of all records: a journal of another revision is not read. */
#define JOURNAL_REVISION 1
/* Length and CRC before a record, and a length of 0 after the last. */
#define JOURNAL_HEAD_BYTES 8
#define JOURNAL_END_BYTES  4
#define JOURNAL_UINT_BYTES 8
/* Longer records are not written: a record holds names and attributes of one request. */
#define JOURNAL_RECORD_MAX_BYTES ((size_t)64 << 20)
#define JOURNAL_SHA256_BYTES     32

enum journal_kind {
    JOURNAL_SESSION = 1, /* the first record, and only that */
    JOURNAL_OBJECT,
    JOURNAL_COMPONENT,
    JOURNAL_ANNOUNCED,
    JOURNAL_OUTCOME,
    JOURNAL_WITHDRAWN
};

/* --- writing (writer_journal.c) --- */

/* Creates the file and writes the first record: the new session. */
bool writer_journal_begin(struct writer_session *session, struct zt_error *error);

/* Each of these appends one record and syncs it, with journal_lock held: a recorded step survives a
 * crash. */
bool writer_journal_declare(struct writer_session *session, struct zt_text object,
                            const struct zt_declaration *declaration, struct zt_error *error);
bool writer_journal_put(struct writer_session *session, struct zt_text object,
                        const struct writer_component *component, struct zt_error *error);
/* Records that the file of that name in the folder is about to be published: if it is missing after
 * a crash, it was published. */
bool writer_journal_announce(struct writer_session *session, const char *file,
                             const uint8_t sha256[32], struct zt_error *error);
/* Records that the announced publication failed and the upload stays open. Writes nothing if none
 * was announced. Until this is recorded the announced file must not be removed: its absence would
 * mean success. */
bool writer_journal_withdraw(struct writer_session *session, struct zt_error *error);
/* Records the answer to the session's commit. */
bool writer_journal_outcome(struct writer_session *session, struct zt_error *error);
/* Closes the file, which the next record opens again. */
void writer_journal_close(struct writer_session *session);

/* --- reading (writer_restore.c) --- */

/* Opens an upload that an earlier process left (kept_kind.open). */
enum kept_opened writer_journal_open(struct server *server, const char *id,
                                     struct kept_upload **out_upload);

#endif
