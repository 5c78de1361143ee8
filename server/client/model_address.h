/* What a URL names, as people write it: a model of the API, also shortened to http://host/name, or
 * any file of an HTTP server; what is wanted of it; and the other files that belong to it. */
#ifndef CLIENT_MODEL_ADDRESS_H
#define CLIENT_MODEL_ADDRESS_H

#include "client/client.h"

#define MODEL_FILE_NAME_SIZE 512

/* What is to be exported instead of the file itself (query of /export); all NULL or 0: the file. */
struct model_wish {
    const char *format;
    const char *shard;
    const char *dtype;
    const char *const *globs;
    unsigned glob_count;
    const char *const *axes;
    unsigned axis_count;
};

bool model_wish_is_set(const struct model_wish *wish);

struct model_file {
    struct client_place place;
    char name[MODEL_FILE_NAME_SIZE]; /* of a file in the current folder */
};

/* Whether a URL can name a model or a file, without asking a server: ZT_ARGUMENT if not. */
enum zt_status model_address_check(const char *url, struct zt_error *error);

/* Finds the file of a URL; asks the server where that is needed. Fails as client_ask and
 * client_refusal do; ZT_ARGUMENT if the URL names no model, or something is wished of a file that
 * only the API gives. */
enum zt_status model_address_find(struct client *client, const char *url,
                                  const struct model_wish *wish, struct model_file *out_file,
                                  struct zt_error *error);

/* The API's path of the model that a URL names, "BASE/v1/models/…", encoded. name: instead of the
 * last segment if that is empty (a URL that ends in '/'); NULL: such a URL names nothing.
 * ZT_ARGUMENT. */
enum zt_status model_address_of_api(const struct web_address *address, const char *name,
                                    char out_path[WEB_TARGET_SIZE], struct zt_error *error);

/* Whether a name ends like that of an index of a model in several files, in any case. */
bool model_address_is_index(struct zt_text name);

#endif
