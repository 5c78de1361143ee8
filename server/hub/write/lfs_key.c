/* The key is a file of 32 random bytes that only its owner can read. It is written under another
 * name and then linked, so that servers that start together agree on the first one. */
#include "hub/write/lfs_key.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "store/state_place.h"

#define NAME_SIZE 48

/* Rejects links, and files that others can write to, because their content is not secret. */
static bool read_key(int folder, uint8_t out_key[TICKET_KEY_BYTES])
{
    const int file = openat(folder, LFS_KEY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    bool is_read;

    if (file < 0)
        return false;
    is_read = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077) == 0 &&
              info.st_size == TICKET_KEY_BYTES &&
              read(file, out_key, TICKET_KEY_BYTES) == TICKET_KEY_BYTES;
    close(file);
    return is_read;
}

/* The server that links first wins. */
static void write_key(int folder)
{
    uint8_t key[TICKET_KEY_BYTES];
    char name[NAME_SIZE];
    bool is_written;
    int file;

    ticket_key_make(key);
    snprintf(name, sizeof(name), LFS_KEY_NAME ".%ld", (long)getpid());
    unlinkat(folder, name, 0);
    file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    is_written = write(file, key, sizeof(key)) == (ssize_t)sizeof(key) && fsync(file) == 0;
    close(file);
    if (is_written && linkat(folder, name, folder, LFS_KEY_NAME, 0) != 0)
        log_write(LOG_LEVEL_DEBUG, "another server has created the key for uploads");
    unlinkat(folder, name, 0);
}

void lfs_key_load(const struct config *config, uint8_t out_key[TICKET_KEY_BYTES])
{
    const int folder = config->writable ? state_folder_open(config) : -1;
    bool is_read = false;

    if (folder >= 0) {
        is_read = read_key(folder, out_key);
        if (!is_read) {
            write_key(folder);
            is_read = read_key(folder, out_key);
        }
        close(folder);
    }
    if (is_read)
        return;
    ticket_key_make(out_key);
    if (config->writable)
        log_write(LOG_LEVEL_WARN,
                  "upload addresses for clients of the Hub become invalid when this process ends: "
                  "their signing key cannot be saved in the state folder");
}
