/* The key is a file of 32 random bytes, for its owner alone. It is written under another name and
 * then linked, so that servers that start together agree on the first one. */
#include "hub/write/lfs_key.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "store/state_place.h"
#include "zt/digest.h"

#define KEY_NAME  "lfs-key"
#define BLOCK     64 /* of SHA-256 */
#define NAME_SIZE 48

/* --- the key --- */

static void make_key(uint8_t out_key[LFS_KEY_BYTES])
{
    while (getrandom(out_key, LFS_KEY_BYTES, 0) != LFS_KEY_BYTES)
        continue;
}

/* A link, or a file that others can write to, is nobody's secret. */
static bool read_key(int folder, uint8_t out_key[LFS_KEY_BYTES])
{
    const int file = openat(folder, KEY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    bool is_read;

    if (file < 0)
        return false;
    is_read = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077) == 0 &&
              info.st_size == LFS_KEY_BYTES && read(file, out_key, LFS_KEY_BYTES) == LFS_KEY_BYTES;
    close(file);
    return is_read;
}

/* Whoever is first decides. */
static void write_key(int folder)
{
    uint8_t key[LFS_KEY_BYTES];
    char name[NAME_SIZE];
    bool is_written;
    int file;

    make_key(key);
    snprintf(name, sizeof(name), KEY_NAME ".%ld", (long)getpid());
    unlinkat(folder, name, 0);
    file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    is_written = write(file, key, sizeof(key)) == (ssize_t)sizeof(key) && fsync(file) == 0;
    close(file);
    if (is_written && linkat(folder, name, folder, KEY_NAME, 0) != 0)
        log_write(LOG_LEVEL_DEBUG, "another server has made the key for uploads");
    unlinkat(folder, name, 0);
}

void lfs_key_load(const struct config *config, uint8_t out_key[LFS_KEY_BYTES])
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
    make_key(out_key);
    if (config->writable)
        log_write(LOG_LEVEL_WARN, "the addresses that clients of the Hub get for uploads end with "
                                  "this process: their key cannot be kept in the state folder");
}

/* --- the code --- */

static bool hash_two(const uint8_t first[BLOCK], const void *second, size_t length,
                     uint8_t out_code[32])
{
    struct zt_hasher *hasher;
    struct zt_digest digest;

    if (zt_hasher_new(ZT_DIGEST_SHA256, &hasher) != ZT_OK)
        return false;
    zt_hasher_update(hasher, first, BLOCK);
    zt_hasher_update(hasher, second, length);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    memcpy(out_code, digest.bytes, 32);
    return true;
}

bool lfs_hmac(const uint8_t *key, size_t key_length, const void *bytes, size_t length,
              uint8_t out_code[32])
{
    uint8_t inner[BLOCK];
    uint8_t outer[BLOCK];

    assert(key_length <= BLOCK);
    for (size_t i = 0; i < BLOCK; i++) {
        const uint8_t byte = i < key_length ? key[i] : 0;

        inner[i] = byte ^ 0x36;
        outer[i] = byte ^ 0x5c;
    }
    return hash_two(inner, bytes, length, out_code) && hash_two(outer, out_code, 32, out_code);
}
