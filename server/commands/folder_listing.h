/* What `ls` shows of a folder or a server: a line for each model, as the server's listing has
 * it. */
#ifndef COMMANDS_FOLDER_LISTING_H
#define COMMANDS_FOLDER_LISTING_H

#include <stdio.h>

#include "files/model_folder.h"

struct listed_model;

struct folder_listing {
    struct model_folder folder;
    struct listed_model *models; /* by name */
    size_t count;
    size_t capacity;
    size_t bad; /* models that could not be opened */
};

/* Opens every model below the folder, one after another. Fails as model_folder_list does. The
 * caller frees the listing. */
enum zt_status folder_listing_make(const char *path, struct folder_listing *out_listing,
                                   struct zt_error *error);
/* Lists the models of a server, or of a folder on it (client/model_listing.h). Fails as
 * model_listing_fetch does. */
enum zt_status folder_listing_fetch(const char *url, struct folder_listing *out_listing,
                                    struct zt_error *error);
void folder_listing_free(struct folder_listing *listing);

/* A table, and the number of models. */
void folder_listing_print(const struct folder_listing *listing, FILE *stream);
/* A name a line. */
void folder_listing_print_names(const struct folder_listing *listing, FILE *stream);
/* Objects with commas between them, and a newline if there are any. */
void folder_listing_print_json(const struct folder_listing *listing, FILE *stream);

#endif
