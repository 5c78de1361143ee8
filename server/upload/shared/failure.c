/* Records failures of writes, and replies with them. */
#include "upload/shared/failure.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

bool failure_set(struct failure *failure, enum problem problem, const struct zt_error *error)
{
    assert(error->status != ZT_OK);
    assert(problem < PROBLEM_COUNT);
    if (!failure->is_set) {
        failure->is_set = true;
        failure->problem = problem;
        failure->error = *error;
    }
    return false;
}

bool failure_refuse(struct failure *failure, enum problem problem, const char *format, ...)
{
    struct zt_error error;
    char message[sizeof(error.message)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    zt_fail(&error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    return failure_set(failure, problem, &error);
}

bool failure_of_store(struct failure *failure, const struct zt_error *error)
{
    assert(error->status != ZT_OK);
    return failure_set(failure, problem_of_write(error), error);
}

bool failure_no_memory(struct failure *failure, const char *purpose)
{
    struct zt_error error;

    zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for %s", purpose);
    return failure_set(failure, PROBLEM_INTERNAL, &error);
}

enum outcome failure_reply(struct request *request, const struct failure *failure)
{
    assert(failure->problem < PROBLEM_COUNT);
    assert(failure->is_set);
    problem_reply_error_as(request, failure->problem, &failure->error);
    if (failure->is_passing)
        problem_retry_soon(request);
    return OUTCOME_READY;
}
