/* Finds the other files of a model, in the same folder: the parts that an index names, the parts of
 * a split GGUF, and the shards of a zTensor 2 model. */
#ifndef CLIENT_RELATED_FILES_H
#define CLIENT_RELATED_FILES_H

#include "client/model_address.h"

#define RELATED_MOST 1024

struct related_files {
    char (*names)[MODEL_FILE_NAME_SIZE];
    unsigned count;
    bool own_names; /* they must keep their names, even if the model is renamed */
};

/* Reads only as much of the file as needed. Finds none for a file that is not a model; checking it
 * will report that. Fails as web_file_open and reading do, and with ZT_LIMIT. */
enum zt_status related_files_find(struct client *client, const struct model_file *file,
                                  struct related_files *out_files, struct zt_error *error);
void related_files_free(struct related_files *files);

/* Makes the address of one of them. */
enum zt_status related_file_place(const struct model_file *file, const char *name,
                                  struct client_place *out_place, struct zt_error *error);

#endif
