/* The other files of a model: the parts that an index names, those of a split GGUF, the shards of a
 * zTensor 2 model. They lie beside its own file. */
#ifndef CLIENT_RELATED_FILES_H
#define CLIENT_RELATED_FILES_H

#include "client/model_address.h"

#define RELATED_MOST 1024

struct related_files {
    char (*names)[MODEL_FILE_NAME_SIZE];
    unsigned count;
    bool own_names; /* they must keep their names, whatever the model is called */
};

/* Reads as much of the file as that takes. None for a file that is no model, which is found out
 * when it is checked. Fails as web_file_open and reading do, and ZT_LIMIT. */
enum zt_status related_files_find(struct client *client, const struct model_file *file,
                                  struct related_files *out_files, struct zt_error *error);
void related_files_free(struct related_files *files);

/* The place of one of them, beside the file. */
enum zt_status related_file_place(const struct model_file *file, const char *name,
                                  struct client_place *out_place, struct zt_error *error);

#endif
