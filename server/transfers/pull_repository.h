/* Pulls every file of a repository into a folder. Files that exist with the same bytes are not
 * fetched again. */
#ifndef TRANSFERS_PULL_REPOSITORY_H
#define TRANSFERS_PULL_REPOSITORY_H

#include "client/repository.h"
#include "transfers/local_tensors.h"
#include "transfers/transfer_options.h"

struct repository_pull {
    const struct transfer_options *given;
    const struct repository *repository;
    const char *url; /* as given */
    /* The folder, which is made if necessary; NULL: the repository's name. */
    const char *output;
    bool is_forced;              /* replaces files that are not tensor files */
    struct local_tensors *local; /* as in struct pull */
};

/* Prints a line about each file. Refuses an output with a tensor file's name, and, unless the URL
 * ends in '/', a folder with only folders, which may be an owner's repositories. Returns the exit
 * status. */
int pull_repository(const struct repository_pull *wanted);

#endif
