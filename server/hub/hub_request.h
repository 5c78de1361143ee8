/* Reads requests about a repository, and finds the version for the response. */
#ifndef HUB_HUB_REQUEST_H
#define HUB_HUB_REQUEST_H

#include "base/json_write.h"
#include "http/exchange/request.h"
#include "hub/repos.h"

/* Names from the URL, decoded after splitting. The texts live as long as the request. */
struct hub_target {
    struct zt_text repo;
    struct zt_text revision; /* "main" if the path has none */
    struct zt_text path;     /* in the repository; may be empty */
};

/* The first member of the structure in request->context, for handlers that need more. */
struct hub_request {
    struct hub_target target;
    bool was_searched;
    struct hub_lookup lookup;
    struct hub_version *version; /* the version that was found; held by the request */
    /* For hub_find_and_write; json is the written response, held by the request. */
    void (*write)(struct request *request, struct hub_request *hub);
    struct json *json;
};

/* Reads repository, revision and path from the names of the route. Returns false if it has
 * replied. */
bool hub_target_read(struct request *request, struct hub_target *out_target);

/* Does the same for a path that ends with the revision, whose slashes need not be escaped. */
bool hub_target_read_whole(struct request *request, struct hub_target *out_target);

/* Finds the version that a request is about. request->context is a struct hub_request, or NULL, and
 * then becomes one. Returns NULL if the request has been answered or must wait; the handler then
 * returns *out_outcome. */
struct hub_request *hub_find(struct request *request, enum outcome *out_outcome);

/* Does the same for a JSON response about a version that the client may see. It is written to
 * hub->json on the worker that has found the version, because repositories can have very many
 * files. */
struct hub_request *hub_find_and_write(struct request *request,
                                       void (*write)(struct request *request,
                                                     struct hub_request *hub),
                                       enum outcome *out_outcome);

/* Looks for the version again, because it is outdated: the handler is called again, and calls
 * hub_find. Returns the handler's outcome. */
enum outcome hub_find_again(struct request *request, struct hub_request *hub);

/* Sends the written response. */
enum outcome hub_reply_json(struct request *request, struct hub_request *hub);

/* Returns the commit for the response: the requested one, if any. */
const char *hub_commit(struct request *request, const struct hub_request *hub);

/* Returns true if the client may see a file of a repository (for a view: its model), or any of its
 * files. */
bool hub_sees_file(const struct request *request, struct zt_text repo, const struct hub_file *file);
bool hub_sees_repo(const struct request *request, struct zt_text repo,
                   const struct hub_version *version);

/* Returns the client's name from its token or certificate, or the name for anonymous clients. */
const char *hub_client_name(const struct request *request);

/* Reads a switch of the query, in all the forms in which clients write it. */
bool hub_switch(struct request *request, const char *name);
/* Reads a value that came as text. */
bool hub_text_is_true(struct zt_text text);
bool hub_text_is_false(struct zt_text text);

/* Copies as many whole characters as fit, and NUL. */
void hub_text_copy(struct zt_text text, char *out_text, size_t size);

/* Returns the query's limit, at most `most`; `usual` if there is none, or it is 0 or not a
 * number. */
size_t hub_limit(struct request *request, size_t usual, size_t most);

#endif
