/* Finds stored files by path, and decides which of them a client may read. */
#ifndef API_FILE_ACCESS_H
#define API_FILE_ACCESS_H

#include "http/exchange/request.h"
#include "store/store.h"
#include "zt/status.h"

/* Returns true if a client may read the file: a model's file if it may read the model; a shard if
 * it may read a model that uses it; any other file if it may read a model of that name. The path
 * ends with NUL. From any thread while the request waits. */
bool client_may_read_file(const struct request *request, struct zt_text path);

enum file_found {
    FILE_FOUND_PENDING, /* call file_search_run again when the request is woken */
    FILE_FOUND,
    FILE_FOUND_FOLDER, /* only if the search wants folders */
    FILE_FOUND_NONE,   /* also if the client may not read it */
    FILE_FOUND_FAILED  /* it has replied */
};

/* A search for one file. It must be the first member of the structure in request->context, where
 * the worker finds it. */
struct file_search {
    const char *path; /* with NUL */
    size_t length;
    bool wants_folder;
    bool was_opened;
    bool is_seen;
    bool is_folder;
    enum zt_status status;
    struct zt_error error;
    struct stored_file *file;             /* NULL: not open */
    const struct file_identity *identity; /* of the file that was found */
};

/* Begins a search; the search belongs to the request. Returns false if it has replied. */
bool file_search_init(struct request *request, struct file_search *search, struct zt_text path);

/* Finds the file. FILE_FOUND: the request holds it, and the reply has its bytes, length, ranges,
 * Last-Modified, and SHA-256 if known, but not the ETag. Models' files come from the catalog, even
 * if they cannot be read as models, and are request->generation; all others are opened for each
 * request, and are request->file. */
enum file_found file_search_run(struct request *request);

#endif
