/* Small files that the configuration names: read whole, or not at all. */
#ifndef INPUT_TEXT_FILE_H
#define INPUT_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Larger files were named by mistake. */
#define TEXT_FILE_MAX ((size_t)1 << 20)

struct text_file {
    char *text; /* with a NUL after it */
    size_t length;
    bool is_public; /* everybody on this machine may read it */
    /* Only this user and root may read it; and the group of the file if root owns it, because that
     * is how Kubernetes gives secrets to a user. */
    bool is_private;
};

/* Reads a regular file into memory that text_file_free frees. False with one line in error, which
 * begins with the key and names the file. */
bool text_file_read(const char *key, const char *path, struct text_file *out_file, char *error,
                    size_t error_size);

/* Overwrites and frees the text. */
void text_file_free(struct text_file *file);

#endif
