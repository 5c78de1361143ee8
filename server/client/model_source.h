/* Opens files for commands, local or on a server, so that callers need not distinguish them. */
#ifndef CLIENT_MODEL_SOURCE_H
#define CLIENT_MODEL_SOURCE_H

#include "client/client.h"
#include "zt/source.h"

/* The options for requests. Change them before the first URL is opened. Texts are borrowed for the
 * life of the process. */
struct client_options *model_source_options(void);

/* Returns the client of all URLs, which ends with the process. Fails as client_open and
 * client_options_finish do. */
enum zt_status model_source_client(struct client **out_client, struct zt_error *error);

/* Opens a path, or a file's URL ("http://…", "https://…"). Fails as zt_source_open_file does, also
 * for URLs: ZT_IO, with ENOENT if the server has no such file; ZT_UNAVAILABLE. */
enum zt_status model_source_open(const char *path, struct zt_source **out_source,
                                 struct zt_error *error);

/* Does the same for an argument from the user: the URL may name a model (client/model_address.h).
 * *out_location is then the URL of its file, which the caller frees; otherwise NULL. */
enum zt_status model_source_find(const char *path, struct zt_source **out_source,
                                 char **out_location, struct zt_error *error);

/* Returns when the file behind a source was modified, according to the file system or the server.
 * Returns false if that is unknown. */
bool model_source_modified_ns(const struct zt_source *source, int64_t *out_time_ns);

#endif
