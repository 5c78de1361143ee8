/* The callbacks that libmicrohttpd calls for each request. mhd.c registers them. */
#ifndef HTTP_WIRE_HANDLER_H
#define HTTP_WIRE_HANDLER_H

#include <microhttpd.h>
#include <stdint.h>

struct mhd;

/* Since 1.0 the library has levels of strictness and itself rejects the headers that
 * header_block_is_plain looks for. */
#define STRICT_PARSER 0x01000000

/* Called after the request line. Returns the request; NULL if it cannot be accepted. */
void *handler_on_target(void *context, const char *target, struct MHD_Connection *handle);

/* Called with the header, with each piece of the body, at its end, and after each resume. */
enum MHD_Result handler_on_request(void *context, struct MHD_Connection *handle, const char *url,
                                   const char *method, const char *version, const char *bytes,
                                   size_t *length, void **request_context);

/* Called when the request is over, for any reason. */
void handler_on_completed(void *context, struct MHD_Connection *handle, void **request_context,
                          enum MHD_RequestTerminationCode code);

/* Looks for changed files, for a request that arrived at this time: a client that changes a file
 * and then requests it must get the new version. Requests that arrive together share one check. */
void handler_poll_changes(struct mhd *mhd, int64_t now_ns);

#endif
