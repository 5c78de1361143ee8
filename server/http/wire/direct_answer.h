/* Answers that the server writes to the socket itself because the library accepts none at that
 * moment. If the socket does not take all of it, the rest is sent later, under the deadlines for
 * slow readers. For the loop's thread. */
#ifndef HTTP_WIRE_DIRECT_ANSWER_H
#define HTTP_WIRE_DIRECT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "http/exchange/exchange.h"
#include "http/exchange/problem.h"

struct connection;

enum direct_result { DIRECT_SENT, DIRECT_WAITS, DIRECT_FAILED };

/* Sends the answer to the connection's request; exchange_answer has made it, and it must be in
 * memory. close: add "Connection: close". Returns DIRECT_WAITS if some bytes are unsent: the
 * connection, which must be RECEIVING, is then SENDING until handover_on_answered is called. In any
 * other state an answer that the socket does not take at once counts as failed. With TLS, close
 * must be true, and bytes that the socket does not take at once are lost. */
enum direct_result direct_answer_send(struct connection *connection, bool close);

/* Writes the head of an answer: status line, fields, and the empty line. room: at least what
 * direct_head_room returns. Returns the length. */
size_t direct_head_room(const struct answer *answer);
size_t direct_head_write(const struct answer *answer, bool close, char *out_text, size_t room);

/* Sends a whole cached answer (response_cache.h) on a connection that stays open, with or without
 * TLS. The text must stay valid until the request ends. Returns DIRECT_WAITS as above; the
 * connection must be the library's. */
enum direct_result direct_text_send(struct connection *connection, const char *text, size_t length);

/* Called when the loop's mhd->direct_epoll is readable; mhd is the loop's struct mhd. */
void direct_answers_run(void *mhd);

/* Sends as much of a problem as fits into the socket's buffer. If the connection has a request, the
 * problem answers that request. The caller must send no part of another answer before or after it;
 * with TLS, the handshake must be complete. */
void direct_problem_send(const struct connection *connection, enum problem problem,
                         const char *detail);

#endif
