/* Interprets URLs as users write them: a model of the API, also shortened to http://host/name, or
 * any file of an HTTP server; which export of it is wanted; and the other files that belong to
 * it. */
#ifndef CLIENT_MODEL_ADDRESS_H
#define CLIENT_MODEL_ADDRESS_H

#include "client/client.h"

#define MODEL_FILE_NAME_SIZE 512

/* The export to fetch instead of the file itself (query of /export). All NULL or 0: the file. */
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
    bool is_named_by_url; /* the URL ends in the name; otherwise the server may have chosen it */
    bool may_be_other;    /* below /files, which has files of every kind */
};

/* Checks that a URL can name a model or a file, without asking a server. Returns ZT_ARGUMENT if
 * not. */
enum zt_status model_address_check(const char *url, struct zt_error *error);

/* Finds the file of a URL, asking the server if necessary. Fails as client_ask and client_refusal
 * do. Returns ZT_ARGUMENT if the URL does not name a model, or if it asks for an export of a file
 * that is not a model of the API. */
enum zt_status model_address_find(struct client *client, const char *url,
                                  const struct model_wish *wish, struct model_file *out_file,
                                  struct zt_error *error);

/* Writes the API's path of the model that a URL names, "BASE/v1/models/…", encoded. name replaces
 * an empty last segment (a URL that ends in '/'); if it is NULL, such a URL is an error. Returns
 * ZT_ARGUMENT. */
enum zt_status model_address_of_api(const struct web_address *address, const char *name,
                                    char out_path[WEB_TARGET_SIZE], struct zt_error *error);

#endif
