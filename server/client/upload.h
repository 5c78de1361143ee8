/* Pushes one file to a server, as a model or under a path, by tus 1.0.0 at /v1/resumable. Resumes
 * after interrupted connections, and after restarts of the server or of this program. */
#ifndef CLIENT_UPLOAD_H
#define CLIENT_UPLOAD_H

#include "client/model_address.h"

struct upload {
    struct client *client;
    struct client_place target; /* the model's path of the API; or the file's, below /files */
    const char *name;           /* the model's name, or the file's path below /files; decoded */
    bool is_file;     /* a file of any kind; the server compares its SHA-256 before publishing it */
    const char *base; /* for a file: the path before /files on the server; usually empty */
    const char *path; /* of the file here */
    bool only_new;    /* fails if the model or file exists */
    /* Called several times a second: total bytes, bytes sent by an earlier run, and bytes sent
     * since. */
    void (*report_progress)(void *context, uint64_t total, uint64_t before, uint64_t sent);
    /* Called once before a longer wait: the server already has the maximum number of this client's
     * uploads, and the error says so. */
    void (*report_waiting)(void *context, const struct zt_error *why);
    void *context;
};

struct upload_result {
    uint64_t size;
    uint64_t resumed; /* bytes that the server already had */
    bool was_there;   /* the server already has these bytes under this name: no data was sent */
    /* The file that the server had for the model before; empty if none, or unknown. */
    char replaced[MODEL_FILE_NAME_SIZE];
};

/* Succeeds once the server has published the model or file. Returns ZT_IO with a reason, or
 * ZT_UNAVAILABLE. The data on the server is kept for another run if that may succeed, for example
 * with another token, or after an obstacle was removed; otherwise it is removed from the server. */
enum zt_status upload_run(const struct upload *upload, struct upload_result *out_result,
                          struct zt_error *error);

#endif
