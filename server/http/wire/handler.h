/* What libmicrohttpd calls for each request. For mhd.c, which registers it. */
#ifndef HTTP_WIRE_HANDLER_H
#define HTTP_WIRE_HANDLER_H

#include <microhttpd.h>

/* From 1.0 on the library has levels of strictness and itself refuses what header_block_is_plain
 * looks for. */
#define STRICT_PARSER 0x01000000

/* The request line is in. Returns the request; NULL if it cannot be taken. */
void *handler_on_target(void *context, const char *target, struct MHD_Connection *handle);

/* Called with the header, with each piece of the body, at its end, and after each resume. */
enum MHD_Result handler_on_request(void *context, struct MHD_Connection *handle, const char *url,
                                   const char *method, const char *version, const char *bytes,
                                   size_t *length, void **request_context);

/* The request is over, in whatever way. */
void handler_on_completed(void *context, struct MHD_Connection *handle, void **request_context,
                          enum MHD_RequestTerminationCode code);

#endif
