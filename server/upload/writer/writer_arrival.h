/* One arriving component of a streaming writer's upload. Its body is written as it arrives, workers
 * hash the written bytes, and a worker finishes and acknowledges it.
 *
 *   RECEIVING --last byte--> FINISHING --acknowledged, or failed--> DONE
 *
 * A body with a known length that is stored unchanged goes to its position in "data" at once. Any
 * other body first goes to an unnamed file, from which it is decoded, compressed or copied. */
#ifndef UPLOAD_WRITER_WRITER_ARRIVAL_H
#define UPLOAD_WRITER_WRITER_ARRIVAL_H

#include "upload/shared/body_follower.h"
#include "upload/writer/writer_session.h"
#include "zt/encode.h"

/* The values in the request. */
struct arrival_terms {
    struct zt_text object; /* held by the arrival */
    struct zt_text component;
    struct zt_shape shape;
    enum zt_dtype dtype;
    enum zt_logical logical;
    uint64_t decoded_length;
    bool body_is_zstd; /* Content-Encoding */
    bool as_sent;      /* the zstd body is stored unchanged */
    bool compress;     /* the server stores it compressed */
    bool without_body; /* the server may already have the bytes: they are looked up by their
                        * digest */
    int level;
    uint64_t body_length; /* UINT64_MAX: chunked */
    struct digest_field content_digest;
    struct digest_field repr_digest;
    bool has_wanted;
    uint8_t wanted_sha256[32];
    uint64_t client;           /* the uploading client (struct job) */
    struct name_filter filter; /* of the models whose bytes may be looked up; valid as long as the
                                * request waits */
};

enum arrival_state { ARRIVAL_RECEIVING, ARRIVAL_FINISHING, ARRIVAL_DONE };

struct arrival {
    struct body_follower follower; /* its references are references to this structure */
    struct writer_session *session;
    uint64_t round;
    struct arrival_terms terms;
    char *names;

    struct staged_file *data; /* a separate descriptor */
    bool has_place;
    struct writer_place place;
    struct staged_file *spool;  /* the body, unless it goes to its position at once */
    struct staged_file *packed; /* the encoder's output */
    uint64_t packed_length;
    struct zt_encoder *encoder;

    struct byte_digests decoded;
    struct byte_digests body;   /* of a zstd body */
    struct byte_digests stored; /* of the encoder's output */

    /* Set by the loop while it receives, by the worker while it finishes. */
    enum arrival_state state;
    struct failure failure;
};

/* Takes a reference to the session, copies the names, opens the files, and reserves a position if
 * the length is known. Returns NULL with failure set. */
struct arrival *arrival_begin(struct writer_session *session, uint64_t round,
                              const struct arrival_terms *terms, struct failure *failure);

/* Takes a piece of the body. After a failure the rest of the body is discarded. */
void arrival_receive(struct arrival *arrival, const struct body_piece *piece);

/* Called on the loop after the last byte: arrival_finish will follow. */
void arrival_end_body(struct arrival *arrival);
/* Does everything from the last byte to the acknowledgement, on a worker. If failure is set
 * afterwards, no data of the component is left. */
void arrival_finish(struct arrival *arrival);

/* Called on the loop when the request has ended. */
void arrival_release(void *arrival);

/* --- between the files of an arrival; each false with failure set --- */

/* Reserves a position in "data". */
bool arrival_take_place(struct arrival *arrival, uint64_t length);
/* Writes at the position, as long as the round lasts. */
bool arrival_write_in_place(struct arrival *arrival, uint64_t at, const void *bytes, size_t length);

/* writer_pull.c: decodes a stored component to its position or into the encoder. */
bool arrival_pull(struct arrival *arrival, const struct zt_component *component,
                  struct zt_source *source);
/* Finds the bytes that the request names by their digest, anywhere on the server. */
bool arrival_pull_held(struct arrival *arrival);

#endif
