/* What a request for something in a repository asks for, and the version that it gets it from. */
#ifndef HUB_HUB_REQUEST_H
#define HUB_HUB_REQUEST_H

#include "base/json_write.h"
#include "http/exchange/request.h"
#include "hub/repos.h"

/* Names as they came, decoded after they were split; texts live as long as the request. */
struct hub_target {
    struct zt_text repo;
    struct zt_text revision; /* "main" where the path gives none */
    struct zt_text path;     /* in the repository; may be empty */
};

/* The first member of what request->context points to, for handlers that have more. */
struct hub_request {
    struct hub_target target;
    bool was_looked_for;
    struct hub_lookup lookup;
    struct hub_version *version; /* that was found; held by the request */
    /* Of hub_find_and_write; json: what is written, held by the request. */
    void (*write)(struct request *request, struct hub_request *hub);
    struct json *json;
};

/* Reads repository, revision and path from the names of the route. False: replied. */
bool hub_target_read(struct request *request, struct hub_target *out_target);

/* The version that a request is about; context is a struct hub_request, or request->context is
 * NULL and becomes one. NULL: the handler returns *out_outcome, since the request has been answered
 * or must wait. */
struct hub_request *hub_find(struct request *request, enum outcome *out_outcome);

/* The same for an answer in JSON about a version that the client sees. It is written to hub->json
 * on the worker that has found the version: repositories can have very many files. */
struct hub_request *hub_find_and_write(struct request *request,
                                       void (*write)(struct request *request,
                                                     struct hub_request *hub),
                                       enum outcome *out_outcome);

/* Has the version of a request looked for once more, since it is not what is there any more: the
 * handler is called again, and calls hub_find. Its outcome. */
enum outcome hub_find_again(struct request *request, struct hub_request *hub);

/* Sends what was written. */
enum outcome hub_reply_json(struct request *request, struct hub_request *hub);

/* The commit that an answer names: the one that was asked for, if one was. */
const char *hub_commit(struct request *request, const struct hub_request *hub);

/* Whether the client may see a file of a repository (of a view: its model), or anything of it. */
bool hub_sees_file(const struct request *request, struct zt_text repo, const struct hub_file *file);
bool hub_sees_repo(const struct request *request, struct zt_text repo,
                   const struct hub_version *version);

/* What a client is called: as its token or certificate says, or as anybody is. */
const char *hub_client_name(const struct request *request);

/* A switch of the query, in all the forms in which clients write it. */
bool hub_switch(struct request *request, const char *name);
/* Of a value that came as text. */
bool hub_text_is_true(struct zt_text text);

/* The query's limit, at most the most; the usual one if there is none, or it is no number or 0. */
size_t hub_limit(struct request *request, size_t usual, size_t most);

#endif
