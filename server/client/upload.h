/* Pushes one file to be a model of a server, by tus 1.0.0 at /v1/resumable: goes on after
 * interruptions of the connection, restarts of the server and of this program. */
#ifndef CLIENT_UPLOAD_H
#define CLIENT_UPLOAD_H

#include "client/client.h"

struct upload {
    struct client *client;
    struct client_place model; /* its path of the API */
    const char *name;          /* of the model, decoded */
    const char *path;          /* of the file */
    bool only_new;             /* replaces nothing */
    /* Called several times a second: bytes in all, there before, and sent since. */
    void (*tell)(void *context, uint64_t total, uint64_t before, uint64_t sent);
    /* Called once before a longer wait: the server has as many uploads of this client as it takes,
     * and the error says so. */
    void (*tell_waiting)(void *context, const struct zt_error *why);
    void *context;
};

struct upload_result {
    uint64_t size;
    uint64_t resumed; /* bytes that the server had from before */
    bool was_there;   /* the server has these bytes as this model: nothing was sent */
};

/* Success: the server has published the model. ZT_IO with its reason, ZT_UNAVAILABLE; what has been
 * sent stays there for another run while the server may take it then (a token, or what lies in the
 * way, may be another), and is removed there otherwise. */
enum zt_status upload_run(const struct upload *upload, struct upload_result *out_result,
                          struct zt_error *error);

#endif
