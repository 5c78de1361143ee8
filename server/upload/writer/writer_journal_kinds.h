/* The records of a journal, for those who write and who read it. */
#ifndef UPLOAD_WRITER_WRITER_JOURNAL_KINDS_H
#define UPLOAD_WRITER_WRITER_JOURNAL_KINDS_H

/* Of the fields of all records: a journal of another revision is not read. */
#define JOURNAL_REVISION 1

enum journal_kind {
    JOURNAL_SESSION = 1, /* the first, and only there */
    JOURNAL_OBJECT,
    JOURNAL_COMPONENT,
    JOURNAL_PUBLISHING,
    JOURNAL_OUTCOME,
    JOURNAL_WITHDRAWN /* what was about to be published was not */
};

#endif
