/* Pulls one file: brings it into PATH.part by parallel ranges of one version, takes up what an
 * interrupted pull has left there, has it checked while it comes, and gives it its name when all of
 * it is there and right. */
#ifndef CLIENT_DOWNLOAD_H
#define CLIENT_DOWNLOAD_H

#include "client/client.h"
#include "zt/source.h"

struct download {
    const struct client_options *options;
    const char *url; /* that the place was made from, for the journal */
    struct client_place place;
    const char *path;
    unsigned jobs;
    /* Whether the server is to be asked for a digest of the whole, which is made while the file
     * comes: for files that carry none. */
    bool wants_digest;
    /* Checks the file, on a thread of its own, and closes the source; reads wait for what has not
     * come. An error is the verdict on the file, unless reading failed. */
    enum zt_status (*check)(void *context, struct zt_source *source, struct zt_error *error);
    /* After a check that found nothing wrong: whether digests of the file's own cover all of its
     * tensors. If not, the server is asked for one of the whole here too. */
    bool (*is_covered)(void *context);
    /* Called several times a second: bytes in all (0: not told), there before, and come since. */
    void (*tell)(void *context, uint64_t total, uint64_t before, uint64_t come);
    void *context;
};

struct download_result {
    uint64_t size;
    uint64_t resumed; /* bytes that were there before */
    bool was_there;   /* PATH has these bytes: nothing was transferred */
    bool has_sha256;  /* the whole was compared with the server's digest */
};

/* On failure nothing has the name PATH that had not before. ZT_CORRUPT, ZT_INVALID, …: the file is
 * wrong, and the part file gone. ZT_STALE: it changed again and again. Otherwise what has come
 * stays in PATH.part. */
enum zt_status download_run(const struct download *download, struct download_result *out_result,
                            struct zt_error *error);

#endif
