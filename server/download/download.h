/* Pulls one file: fetches it into PATH.part by parallel ranges of one version, resumes after an
 * interrupted pull, checks the file while it arrives, and renames it to PATH once it is complete
 * and verified. */
#ifndef DOWNLOAD_DOWNLOAD_H
#define DOWNLOAD_DOWNLOAD_H

#include "client/client.h"
#include "download/copied_bytes.h"
#include "zt/source.h"

struct download {
    const struct client_options *options;
    const char *url; /* the URL as the user typed it, for the journal */
    struct client_place place;
    const char *path;
    bool replaces_any;     /* replaces any file, even if it is not a tensor file
                        * (download/replaceable.h) */
    const uint8_t *sha256; /* which the file must have, as its server has stated; NULL: unknown */
    /* Requests a digest of the whole file from the server, and computes it while the file arrives:
     * for formats without digests. */
    bool wants_digest;
    /* Finds bytes of a version that local files have. May be NULL. Fails only if out of memory, or
     * if the version is gone. */
    enum zt_status (*find_local)(void *context, struct client *client, struct web_file *web,
                                 struct copied_bytes *copied, struct zt_error *error);
    /* Checks the file on a separate thread, and closes the source; reads wait for missing bytes. An
     * error is the verdict on the file, unless reading failed. */
    enum zt_status (*check)(void *context, struct zt_source *source, struct zt_error *error);
    /* Called after a successful check. Returns true if the file's own digests cover all its
     * tensors; otherwise the server is asked for a digest of the whole. */
    bool (*is_covered)(void *context);
    /* Called several times a second: total bytes (0: unknown), bytes of an earlier pull or of local
     * files, and bytes received now. */
    void (*report_progress)(void *context, uint64_t total, uint64_t before, uint64_t received);
    void *context;
};

struct download_result {
    uint64_t size;
    uint64_t resumed;         /* bytes that an earlier pull had fetched */
    uint64_t copied;          /* bytes from local files, and those made of differences */
    uint64_t made;            /* of these: made of local tensors and differences */
    uint64_t differences;     /* bytes of these differences from the server */
    uint64_t received;        /* bytes from the server */
    bool is_again;            /* bytes of local files were wrong, and the whole was fetched */
    bool was_there;           /* PATH already has these bytes: no file data was transferred */
    bool has_sha256;          /* the whole file was compared with the server's digest */
    char axis_suggestion[32]; /* as in struct web_file */
};

/* On failure PATH is unchanged. Returns ZT_CORRUPT, ZT_INVALID, … if the file is wrong; the part
 * file was then removed. ZT_STALE: it kept changing. ZT_ARGUMENT: PATH is not a regular file, or
 * must not be replaced. After other failures PATH.part keeps the fetched bytes. */
enum zt_status download_run(const struct download *download, struct download_result *out_result,
                            struct zt_error *error);

#endif
