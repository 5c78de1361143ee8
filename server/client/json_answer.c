#include "client/json_answer.h"

#include "input/json_read.h"

/* Enough for a page of a listing, and for a repository of many thousand files. */
#define ANSWER_MOST ((size_t)64 << 20)

static enum zt_status read_refusal(const struct remote_exchange *exchange, bool *out_is_problem,
                                   struct zt_error *error)
{
    const struct zt_text answer = {exchange->answer != NULL ? exchange->answer : "",
                                   exchange->answer_length};
    struct json_t *problem = json_object_read(answer, NULL);

    if (out_is_problem != NULL)
        *out_is_problem = problem != NULL;
    json_object_free(problem);
    return client_refusal(exchange, error);
}

/* Sends a request without a body: GET, or POST if it starts work. */
static enum zt_status ask(struct client *client, struct client_place *place, bool starts_work,
                          struct json_t **out_object, bool *out_is_problem, struct zt_error *error)
{
    struct json_t *object = NULL;
    struct remote_exchange exchange;
    enum zt_status status;

    if (out_is_problem != NULL)
        *out_is_problem = false;
    client_prepare(client, place, &exchange);
    exchange.method = starts_work ? "POST" : "GET";
    remote_exchange_add(&exchange, "accept", "application/json");
    exchange.body_most = ANSWER_MOST;
    status = client_ask(client, place, &exchange, error);
    if (status == ZT_OK && exchange.head.status != (starts_work ? 202 : 200))
        status = read_refusal(&exchange, out_is_problem, error);
    if (status == ZT_OK)
        object = json_object_read((struct zt_text){exchange.answer, exchange.answer_length}, NULL);
    if (status == ZT_OK && object == NULL)
        status = zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                         "the server's response is not JSON: is it a model server?");
    remote_exchange_free(&exchange);
    if (status == ZT_OK)
        *out_object = object;
    return status;
}

enum zt_status json_answer_ask(struct client *client, struct client_place *place,
                               struct json_t **out_object, bool *out_is_problem,
                               struct zt_error *error)
{
    return ask(client, place, false, out_object, out_is_problem, error);
}

enum zt_status json_answer_start(struct client *client, struct client_place *place,
                                 struct json_t **out_object, struct zt_error *error)
{
    return ask(client, place, true, out_object, NULL, error);
}
