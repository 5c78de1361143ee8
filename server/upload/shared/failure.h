/* The reason why a step of a write failed: the problem to reply with, and the details. Only the
 * first failure is kept. The functions that record a failure return false, so that a step can
 * return their result. */
#ifndef UPLOAD_SHARED_FAILURE_H
#define UPLOAD_SHARED_FAILURE_H

#include "http/exchange/problem.h"

/* Zeroed: no failure. */
struct failure {
    bool is_set;
    bool is_passing; /* a retry soon may succeed, because another request uses the upload or the
                      * name; problems that are always temporary do not need it */
    enum problem problem;
    struct zt_error error;
};

bool failure_set(struct failure *failure, enum problem problem, const struct zt_error *error);
/* Records a refusal with a custom message. */
bool failure_refuse(struct failure *failure, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Records that the store could not read or write, for example because the disk is full. */
bool failure_of_store(struct failure *failure, const struct zt_error *error);
/* Records "no memory for PURPOSE". */
bool failure_no_memory(struct failure *failure, const char *purpose);

/* Replies with the failure, and with Retry-After if a retry soon may succeed. Always returns
 * OUTCOME_READY. */
enum outcome failure_reply(struct request *request, const struct failure *failure);

#endif
