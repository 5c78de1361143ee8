/* Pointers of Git LFS: the text that git stores instead of a file, with the file's SHA-256. */
#ifndef HUB_POINTER_H
#define HUB_POINTER_H

#include <stdbool.h>
#include <stddef.h>

#include "hub/version.h"

#define HUB_POINTER_SIZE 256

/* Writes the pointer to a file and returns its length. The digest in it is the file's etag. */
size_t hub_pointer_print(const struct hub_file *file, char out_text[HUB_POINTER_SIZE]);

/* Returns true if the Hub would keep the file in LFS, judged by its name, as in a new repository of
 * the Hub, or by its size, and its digest is known. */
bool hub_pointer_is_for(const struct hub_file *file);

#endif
