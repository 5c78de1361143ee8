/* Accepts clients where the library does not: while no descriptors are left, and at s3.listen. For
 * the loop's thread. */
#ifndef HTTP_WIRE_ACCEPTING_H
#define HTTP_WIRE_ACCEPTING_H

struct mhd;

/* Notes that clients wait because no descriptors are left. */
void accepting_note_starved(struct mhd *mhd);

/* Accepts waiting clients while descriptors are short; listening is the library's socket, or -1.
 * The library stops listening until a connection ends, or retries endlessly if it has none. So the
 * server itself retries from time to time, and refuses the clients with its reserve descriptor if
 * they wait too long. */
void accepting_serve(struct mhd *mhd, int listening);

/* Called when a client has connected to s3.listen; mhd is the loop's struct mhd. mhd_run then
 * accepts it. */
void accepting_on_s3_client(void *mhd);

/* Accepts clients that wait at s3.listen. If no descriptors are left, the next call tries again. */
void accepting_take_s3(struct mhd *mhd);

#endif
