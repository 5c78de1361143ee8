/* What of a manifest a request asks for (prefix, match, fields, pretty; Accept-Encoding), and the
 * tag of such an answer. */
#ifndef API_SELECTION_H
#define API_SELECTION_H

#include "api/coded_reply.h"
#include "derived/manifest_json.h"
#include "http/exchange/request.h"

struct selection {
    struct coded_reply reply; /* first; its JSON is the manifest's or the object's */
    struct manifest_selection manifest;
    bool pretty;
    bool is_whole; /* everything, compact: the text that is kept */
    bool written;
};

/* Reads the query into the request's memory, chooses the coding and says what the answer varies by.
 * NULL: replied with a problem. */
struct selection *selection_read(struct request *request);

/* The globs of match alone, into the request's memory. False: replied with a problem. */
bool selection_read_matches(struct request *request, struct manifest_selection *selection);

/* Where a generation's manifest comes from, for manifest_write. */
struct manifest_source selection_source(const struct generation *generation);

/* A strong tag of its own for this selection of what the request's generation shows. what: a letter
 * or so for each kind of answer, so that no two share a tag. NULL when memory is out. */
const char *selection_etag(struct request *request, const struct selection *selection,
                           const char *what);

#endif
