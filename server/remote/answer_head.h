/* Reads the header of an answer line by line (RFC 9112 section 4 and 5, RFC 9110 section 14.4) and
 * keeps what exchanges want to know of it. The lines come from a service that may be hostile. */
#ifndef REMOTE_ANSWER_HEAD_H
#define REMOTE_ANSWER_HEAD_H

#include "remote/remote.h"
#include "zt/text.h"

struct answer_head {
    struct remote_head fields;
    size_t length;  /* bytes of all lines so far */
    bool is_whole;  /* the empty line after a final status has come */
    bool is_framed; /* Transfer-Encoding: Content-Length says nothing */
    bool is_broken; /* too long, malformed, or two fields that contradict each other */
};

void answer_head_clear(struct answer_head *head);

/* Takes one line with or without its end. False: broken, the rest is of no use. Lines after the
 * header, which are trailers, are ignored. */
bool answer_head_take(struct answer_head *head, struct zt_text line);

#endif
