/* Pulls the files of a model or a repository, one after another: with progress, a check, and a line
 * about each. */
#ifndef TRANSFERS_PULLED_FILE_H
#define TRANSFERS_PULLED_FILE_H

#include "transfers/local_tensors.h"
#include "transfers/transfer_options.h"

/* The result of checking one file. */
struct checked_file {
    bool is_model; /* false: a shard without a manifest, or a file that need not be a model */
    uint32_t objects;
    uint32_t verified;
    uint32_t undigested;
    uint32_t unsupported;
};

struct pull {
    const struct transfer_options *given;
    bool is_forced;              /* replaces any file */
    struct local_tensors *local; /* of --have; NULL: none */
    struct progress_line line;   /* file and files are set by the caller */
    /* Of the file at work on. */
    uint64_t reported;
    uint64_t skipped; /* reported as received earlier, or copied */
    const char *path;
    bool may_be_other;
    struct checked_file checked;
};

struct pulled_file {
    const struct client_place *place;
    const char *url;  /* the file's, for the next pull */
    const char *path; /* here */
    /* It may be any file: it is checked as a model only if its extension says that it is one. */
    bool may_be_other;
    const uint8_t *sha256; /* what the server's list says; NULL: nothing */
};

/* Pulls a file. Prints its result, or a line about the failure; returns the exit status. */
int pull_file(struct pull *pull, const struct pulled_file *file);

#endif
