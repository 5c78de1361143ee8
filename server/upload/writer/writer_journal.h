/* The journal of a streaming writer's upload: one record for each thing that was acknowledged. */
#ifndef UPLOAD_WRITER_WRITER_JOURNAL_H
#define UPLOAD_WRITER_WRITER_JOURNAL_H

#include "upload/writer/writer_session.h"

/* The session as it was begun: the journal's first record. The file is made. */
bool writer_journal_begin(struct writer_session *session, struct zt_error *error);

/* Each appends one record and syncs it, with journal_lock held: what is true afterwards stays true
 * after a crash. */
bool writer_journal_declare(struct writer_session *session, struct zt_text object,
                            const struct zt_declaration *declaration, struct zt_error *error);
bool writer_journal_put(struct writer_session *session, struct zt_text object,
                        const struct writer_component *component, struct zt_error *error);
/* The file of that name in the place is about to be published: when it is gone after a crash, it
 * was. */
bool writer_journal_publish(struct writer_session *session, const char *file,
                            const uint8_t sha256[32], struct zt_error *error);
/* That publication failed, and the upload goes on. Nothing is written if none was announced. Until
 * this is written the announced file must not be removed: its absence would mean success. */
bool writer_journal_withdraw(struct writer_session *session, struct zt_error *error);
bool writer_journal_outcome(struct writer_session *session, struct zt_error *error);

/* Reads what an earlier process left: session, contents, state. False when there is no journal, or
 * no session in it. Records behind one that is not whole were never acknowledged. */
bool writer_journal_restore(struct writer_session *session);

#endif
