/* Requests that are filled in by hand, of a server without connections. */
#ifndef EXCHANGE_REQUEST_H
#define EXCHANGE_REQUEST_H

#include "tests.h"

#include "http/exchange/answer.h"
#include "http/exchange/request_state.h"

static struct config config;
static struct server server = {.config = &config};

static inline struct request *add(struct request *request, const char *name, const char *value)
{
    const struct header_field field = {name, value, (uint32_t)strlen(name),
                                       (uint32_t)strlen(value)};

    assert_true(request_add_header(request, field));
    return request;
}

static inline struct request *request_of(enum method method, const char *target)
{
    struct request *request = request_new(&server, NULL, target);

    assert_non_null(request);
    request->method = method;
    return add(request, "Host", "x");
}

static struct request *last;

static inline int free_last(void **state)
{
    (void)state;
    request_free(last);
    last = NULL;
    return 0;
}

static inline const char *field_of(const struct answer *answer, const char *name)
{
    for (unsigned i = 0; i < answer->field_count; i++)
        if (strcmp(answer->fields[i].name, name) == 0)
            return answer->fields[i].value;
    return "";
}

#endif
