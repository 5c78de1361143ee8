/* Answers that the server sends itself, as text, because the library cannot send any at that
 * moment. What the socket does not take at once is sent when it takes more, while the deadlines for
 * slow readers run. All functions are for the loop's thread. */
#ifndef HTTP_WIRE_OWN_ANSWERS_H
#define HTTP_WIRE_OWN_ANSWERS_H

#include <stdbool.h>

struct connection;

struct own_answers {
    int epoll; /* becomes readable when own_answers_run has something to do */
    /* Called when an answer that could not be sent at once has been sent whole, or cannot be. */
    void (*ended)(struct connection *connection, bool whole);
};

/* -1 without descriptors; then only own_answers_end may follow. */
int own_answers_init(struct own_answers *answers,
                     void (*ended)(struct connection *connection, bool whole));
void own_answers_end(struct own_answers *answers);

/* For the loop: the descriptor is readable. */
void own_answers_run(void *answers);

enum own_answer { OWN_ANSWER_SENT, OWN_ANSWER_WAITS, OWN_ANSWER_FAILED };

/* Sends the answer to the connection's request, which exchange_answer has made and which must be in
 * memory; close: it says that the connection is closed. WAITS: the connection, which must be
 * suspended, stays so until ended is called. If it is not suspended, what the socket does not take
 * at once counts as failed. Without TLS only. */
enum own_answer own_answer_send(struct connection *connection, bool close);

#endif
