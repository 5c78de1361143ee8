/* Why a step of a write failed: the problem to answer with, and the details. The first failure is
 * kept. The functions that record a failure return false, so that a step can return their
 * result. */
#ifndef UPLOAD_SHARED_FAILURE_H
#define UPLOAD_SHARED_FAILURE_H

#include "http/exchange/problem.h"

/* All zero: nothing failed. */
struct failure {
    bool is_set;
    bool is_passing; /* another request is using the upload: worth trying again soon */
    enum problem problem;
    struct zt_error error;
};

bool failure_set(struct failure *failure, enum problem problem, const struct zt_error *error);
/* A refusal with a message of its own. */
bool failure_refuse(struct failure *failure, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The store could not write or read, for lack of space or any other reason. */
bool failure_of_store(struct failure *failure, const struct zt_error *error);
/* Completes the sentence "no memory for ...". */
bool failure_no_memory(struct failure *failure, const char *purpose);

/* Replies with the failure, and with Retry-After if it is passing. Always OUTCOME_READY. */
enum outcome failure_reply(struct request *request, const struct failure *failure);

#endif
