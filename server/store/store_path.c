/* Names of models and the paths of their files; opening paths below the root.
 *
 * A name consists of parts joined by '/'. No part begins with a dot, so none is "." or "..". A path
 * is opened with openat2 and RESOLVE_BENEATH or, if the kernel or a sandbox refuses that call, part
 * by part without following symbolic links. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/store.h"
#include "store/store_path.h"
#include "store/variant_index.h"
#include "zt/utf8.h"

/* --- names, and extensions in their order of precedence --- */

static const char *const extensions[] = {
    ".zt", ".safetensors", ".gguf", ".mag", ".npz", ".npy", ".pt", ".pth", ".bin", ".ckpt", ".onnx",
    /* Indices come after the extensions of files that are a model by themselves. */
    ".safetensors.index.json", ".bin.index.json"};

#define EXTENSION_COUNT (sizeof(extensions) / sizeof(extensions[0]))
#define INDEX_SUFFIX    ".index.json"

const char *model_extension(unsigned rank)
{
    return rank < EXTENSION_COUNT ? extensions[rank] : NULL;
}

static_assert(EXTENSION_COUNT == VARIANT_INDEX_RANK, "variants have the ranks behind");

bool model_rank_is_index(unsigned rank)
{
    const char *extension = model_extension(rank);
    const size_t length = extension != NULL ? strlen(extension) : 0;

    if (variant_index_has_rank(rank))
        return true;
    return length > strlen(INDEX_SUFFIX) &&
           strcmp(extension + length - strlen(INDEX_SUFFIX), INDEX_SUFFIX) == 0;
}

/* Not isalnum, which depends on the locale. */
static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_name_character(char c)
{
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
}

/* All of Unicode's control characters, in UTF-8: U+0000 to U+001F, U+007F, U+0080 to U+009F. */
static bool has_control_character(struct zt_text name)
{
    for (size_t i = 0; i < name.length; i++) {
        const unsigned char c = (unsigned char)name.bytes[i];

        if (c < 0x20 || c == 0x7F ||
            (c == 0xC2 && i + 1 < name.length && (unsigned char)name.bytes[i + 1] < 0xA0))
            return true;
    }
    return false;
}

bool model_segment_is_resource(struct zt_text segment)
{
    static const char *const resources[] = {"objects", "export", "verification", "uploads",
                                            "revisions"};

    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
        if (zt_text_is(segment, resources[i]))
            return true;
    return false;
}

bool model_name_is_valid(struct zt_text name)
{
    bool at_start = true;

    if (name.length == 0 || name.length > MODEL_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        const char c = name.bytes[i];

        if (at_start && (c == '/' || c == '.'))
            return false;
        at_start = c == '/';
    }
    return !at_start && !has_control_character(name) && zt_utf8_valid(name.bytes, name.length);
}

bool store_path_is_served(struct zt_text path)
{
    size_t part = 0;

    if (!model_name_is_valid(path))
        return false;
    for (size_t i = 0; i < path.length; i++) {
        part = path.bytes[i] == '/' ? 0 : part + 1;
        if (part > FILE_PART_MAX)
            return false;
    }
    return true;
}

bool model_name_is_plain(struct zt_text name)
{
    bool at_start = true;

    if (name.length == 0 || name.length > MODEL_PLAIN_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.bytes[i];

        if (c == '/' ? at_start : !(at_start ? is_alphanumeric(c) : is_name_character(c)))
            return false;
        at_start = c == '/';
    }
    return !at_start;
}

static const char *last_dot(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strrchr(slash != NULL ? slash : path, '.');
}

static bool ends_with(const char *text, size_t length, const char *suffix)
{
    const size_t suffix_length = strlen(suffix);

    return length > suffix_length && strcasecmp(text + length - suffix_length, suffix) == 0;
}

/* Returns the start of the extension, or NULL if there is none. An index has all of
 * ".safetensors.index.json" as its extension. */
static const char *extension_of(const char *path)
{
    const size_t length = strlen(path);

    for (unsigned rank = 0; rank < EXTENSION_COUNT; rank++)
        if (model_rank_is_index(rank) && ends_with(path, length, extensions[rank]))
            return path + length - strlen(extensions[rank]);
    return last_dot(path);
}

bool model_path_has_bad_name(const char *path)
{
    const char *dot = extension_of(path);
    size_t length;
    unsigned rank;

    for (size_t i = 0; dot != NULL && i < EXTENSION_COUNT; i++)
        if (strcasecmp(dot, extensions[i]) == 0)
            return !model_path_split(path, &length, &rank);
    return false;
}

bool model_path_needs_sniffing(const char *path)
{
    static const char *const ambiguous[] = {".pt", ".pth", ".bin", ".ckpt"};
    const char *dot = last_dot(path);

    for (size_t i = 0; dot != NULL && i < sizeof(ambiguous) / sizeof(ambiguous[0]); i++)
        if (strcasecmp(dot, ambiguous[i]) == 0)
            return true;
    return false;
}

bool model_path_is_unsupported_format(const char *path)
{
    static const char *const other_formats[] = {
        ".h5", ".hdf5", ".pkl",  ".pickle",  ".msgpack",  ".keras", ".tflite",
        ".pb", ".nemo", ".ggml", ".mlmodel", ".pdparams", ".pt2"};
    const char *dot = last_dot(path);

    for (size_t i = 0; dot != NULL && i < sizeof(other_formats) / sizeof(other_formats[0]); i++)
        if (strcasecmp(dot, other_formats[i]) == 0)
            return true;
    return false;
}

/* Such paths mean all parts of a split GGUF (parts/split_path.h), and never a single file. */
static bool is_like_split(const char *path, const char *extension)
{
    assert(extension[0] == '.');
    return strstr(path, "-*-of-") != NULL && strcasecmp(extension, ".gguf") == 0;
}

bool model_extension_ends(struct zt_text file_name, unsigned rank)
{
    const char *end = file_name.bytes + file_name.length;
    const char *extension;
    size_t length;

    assert(rank < EXTENSION_COUNT);
    extension = extensions[rank];
    length = strlen(extension);
    return file_name.length > length && end[-(ptrdiff_t)length - 1] != '/' &&
           strncasecmp(end - length, extension, length) == 0;
}

/* The path without ".json" is not a model's name, but no other file has it either. */
static bool split_variant(const char *path, size_t *out_name_length, unsigned *out_rank)
{
    struct variant_index index;
    struct zt_text name = zt_text_from(path);

    if (!variant_index_read(name, &index))
        return false;
    name.length -= strlen(".json");
    if (!model_name_is_valid(name))
        return false;
    *out_name_length = name.length;
    assert(index.form < VARIANT_INDEX_FORMS);
    *out_rank = VARIANT_INDEX_RANK + index.form;
    return true;
}

bool model_path_split(const char *path, size_t *out_name_length, unsigned *out_rank)
{
    const char *dot = extension_of(path);

    if (dot == NULL)
        return false;
    for (unsigned rank = 0; rank < EXTENSION_COUNT; rank++) {
        size_t length = (size_t)(dot - path);

        if (strcasecmp(dot, extensions[rank]) != 0)
            continue;
        if (!model_name_is_valid((struct zt_text){path, length}) || is_like_split(path, dot))
            return false;
        *out_name_length = length;
        *out_rank = rank;
        return true;
    }
    return split_variant(path, out_name_length, out_rank);
}

/* --- opening --- */

/* The kernel returns EAGAIN if something is renamed during a lookup with "..". More often than this
 * it is an attack. */
#define RETRIES_MAX 8

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

bool store_path_is_clean(const char *path)
{
    size_t length = strlen(path);
    size_t start = 0;

    if (length == 0 || length >= STORE_PATH_SIZE)
        return false;
    for (size_t at = 0; at <= length; at++) {
        if (path[at] != '/' && path[at] != '\0')
            continue;
        if (at == start || (at - start == 1 && path[start] == '.') ||
            (at - start == 2 && path[start] == '.' && path[start + 1] == '.'))
            return false;
        start = at + 1;
    }
    return true;
}

static int try_openat2(int root, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
                           .resolve = resolve | RESOLVE_NO_MAGICLINKS};
    int descriptor = -1;

    for (int i = 0; i < RETRIES_MAX; i++) {
        descriptor = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (descriptor >= 0 || (errno != EINTR && errno != EAGAIN))
            break;
    }
    return descriptor;
}

/* Opens folder by folder. Any symbolic link is refused (ELOOP, or ENOTDIR before the last part). */
static int open_by_parts(int root, const char *path, int flags)
{
    char parts[STORE_PATH_SIZE];
    char *part = parts;
    int folder = root;
    int next = -1;

    assert(strlen(path) < sizeof(parts));
    snprintf(parts, sizeof(parts), "%s", path);
    for (char *slash; (slash = strchr(part, '/')) != NULL; part = slash + 1) {
        *slash = '\0';
        next = openat(folder, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder != root)
            close(folder);
        if (next < 0)
            return -1;
        folder = next;
    }
    do {
        next = openat(folder, part, flags | O_NOFOLLOW | O_CLOEXEC);
    } while (next < 0 && errno == EINTR);
    if (folder != root) {
        int os_error = errno;

        close(folder);
        errno = os_error;
    }
    return next;
}

/* Asks the kernel for the path of an open descriptor. */
static bool path_of_descriptor(int descriptor, char out_path[PATH_MAX])
{
    char link[64];
    ssize_t length;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
    length = readlink(link, out_path, PATH_MAX);
    if (length <= 0 || length >= PATH_MAX)
        return false;
    out_path[length] = '\0';
    return true;
}

/* An absolute symbolic link may still lead to a file below the root. The file is found by following
 * the link with O_PATH, which opens nothing, and then opened beneath the root under its real path,
 * which has no links. */
static int open_absolute_link(int root, const char *path, int flags)
{
    char root_path[PATH_MAX];
    char target[PATH_MAX];
    size_t length;
    int place = openat(root, path, O_PATH | O_CLOEXEC);
    bool known;

    if (place < 0)
        return -1;
    known = path_of_descriptor(root, root_path) && path_of_descriptor(place, target);
    close(place);
    length = known && strcmp(root_path, "/") != 0 ? strlen(root_path) : 0;
    if (!known || strncmp(target, root_path, length) != 0 || target[length] != '/') {
        errno = ENOENT;
        return -1;
    }
    return try_openat2(root, target + length + 1, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int store_path_open(int root, const char *path, int flags)
{
    int descriptor = try_openat2(root, path, flags, RESOLVE_BENEATH);

    assert(root >= 0 && path[0] != '/');
    if (descriptor < 0 && errno == EXDEV)
        descriptor = open_absolute_link(root, path, flags);
    /* Older sandboxes return EPERM for system calls that they do not know. If EPERM was about the
     * file, opening by parts fails with it too. */
    if (descriptor < 0 && (errno == ENOSYS || errno == EPERM))
        descriptor = open_by_parts(root, path, flags);
    if (descriptor < 0 &&
        (errno == EXDEV || errno == ELOOP || errno == ENOTDIR || errno == ENAMETOOLONG))
        errno = ENOENT;
    return descriptor;
}

bool store_path_resolve(int root, const char *path, char out_path[STORE_PATH_SIZE])
{
    const int place = store_path_open(root, path, O_PATH);
    bool is_known;

    if (place < 0)
        return false;
    is_known = store_path_of(root, place, out_path);
    close(place);
    return is_known;
}

bool store_path_of(int root, int descriptor, char out_path[STORE_PATH_SIZE])
{
    char root_path[PATH_MAX];
    char target[PATH_MAX];
    const bool is_known =
        path_of_descriptor(root, root_path) && path_of_descriptor(descriptor, target);
    size_t length;

    length = is_known && strcmp(root_path, "/") != 0 ? strlen(root_path) : 0;
    if (!is_known || strncmp(target, root_path, length) != 0 ||
        (target[length] != '/' && target[length] != '\0') ||
        strlen(target + length) > STORE_PATH_SIZE - 1)
        return false;
    length += target[length] == '/';
    strcpy(out_path, target + length);
    return true;
}

/* Opens the file behind an O_PATH descriptor for use. */
static int reopen(int place, int flags)
{
    char link[64];
    int descriptor;

    assert(place >= 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
    do {
        descriptor = open(link, flags | O_CLOEXEC);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

/* For systems without /proc: opens the name again. If a FIFO has taken the name, this does not
 * wait. */
static int open_same(int root, const char *path, int flags, const struct stat *wanted)
{
    int descriptor = store_path_open(root, path, flags | O_NONBLOCK | O_NOCTTY);
    struct stat info;

    assert(S_ISREG(wanted->st_mode));
    if (descriptor < 0 || (fstat(descriptor, &info) == 0 && info.st_ino == wanted->st_ino &&
                           info.st_dev == wanted->st_dev))
        return descriptor;
    close(descriptor);
    errno = ENOENT;
    return -1;
}

int store_path_open_file(int root, const char *path, int flags)
{
    /* This opens a name, not a file: it has no effect on a device or FIFO. */
    int place = store_path_open(root, path, O_PATH | (flags & O_NOFOLLOW));
    struct stat info;
    int descriptor = -1;
    int os_error;

    if (place < 0)
        return -1;
    if (fstat(place, &info) == 0) {
        errno = ENOENT;
        if (S_ISREG(info.st_mode))
            descriptor = reopen(place, flags & ~O_NOFOLLOW);
    }
    os_error = errno;
    close(place);
    errno = os_error;
    if (descriptor < 0 && errno == ENOENT && S_ISREG(info.st_mode))
        return open_same(root, path, flags, &info);
    return descriptor;
}

bool store_path_is_other(int root, const char *path)
{
    const char *base;
    const int folder = store_path_open_parent(root, path, false, &base);
    struct stat info;
    bool is_other;
    int place;

    if (folder < 0)
        return false;
    is_other = fstatat(folder, base, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode) &&
               !S_ISDIR(info.st_mode);
    close(folder);
    if (!is_other || !S_ISLNK(info.st_mode))
        return is_other;
    place = store_path_open(root, path, O_PATH);
    if (place < 0)
        return true;
    is_other = fstat(place, &info) != 0 || !S_ISREG(info.st_mode);
    close(place);
    return is_other;
}

/* If the folder cannot be made durable it is removed, because the next writer would assume that it
 * is durable. */
static bool make_durable_folder(int above, const char *base)
{
    int os_error;

    assert(above >= 0);
    if (mkdirat(above, base, 0755) != 0)
        return errno == EEXIST;
    if (fsync(above) == 0)
        return true;
    os_error = errno;
    unlinkat(above, base, AT_REMOVEDIR);
    errno = os_error;
    return false;
}

/* Makes one folder durably, unless it exists. */
static bool make_folder(int root, const char *path)
{
    const char *base;
    int above = store_path_open_parent(root, path, false, &base);
    bool made;
    int os_error;

    if (above < 0)
        return false;
    made = make_durable_folder(above, base);
    os_error = errno;
    close(above);
    errno = os_error;
    return made;
}

bool store_path_make_folders(int root, const char *path)
{
    char folder[STORE_PATH_SIZE];

    assert(path[0] != '\0' && path[0] != '/');
    for (size_t at = 1;; at++) {
        if (path[at] != '/' && path[at] != '\0')
            continue;
        snprintf(folder, sizeof(folder), "%.*s", (int)at, path);
        if (!make_folder(root, folder))
            return false;
        if (path[at] == '\0')
            return true;
    }
}

/* Other processes may remove a new folder, because it is empty. */
static int make_parent(int root, const char *parent)
{
    int folder = -1;
    bool are_made = false;

    for (unsigned i = 0; folder < 0 && i < STORE_FOLDER_TRIES_MAX; i++) {
        are_made = store_path_make_folders(root, parent);
        if (are_made)
            folder = store_path_open(root, parent, FOLDER_FLAGS);
        if (folder < 0 && errno != ENOENT)
            break;
    }
    /* All parts exist, but there is no such folder: a file, or a link out of the root, is in the
     * way. */
    if (folder < 0 && are_made && errno == ENOENT)
        errno = ENOTDIR;
    return folder;
}

int store_path_open_parent(int root, const char *path, bool make, const char **out_base)
{
    const char *slash = strrchr(path, '/');
    char parent[STORE_PATH_SIZE];
    int folder;

    assert(store_path_is_clean(path));
    *out_base = slash == NULL ? path : slash + 1;
    if (slash == NULL)
        return fcntl(root, F_DUPFD_CLOEXEC, 0);
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
    folder = store_path_open(root, parent, FOLDER_FLAGS);
    if (folder >= 0 || !make || errno != ENOENT)
        return folder;
    return make_parent(root, parent);
}

void store_hidden_name(const char *prefix, char out_name[STAGING_HIDDEN_NAME_SIZE])
{
    uint64_t random = 0;

    /* O_EXCL makes names unique; randomness only makes a second try rare. */
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint64_t)clock_ns() * 0x9E3779B97F4A7C15U ^ (uint64_t)getpid();
    assert(strlen(prefix) + 2 * sizeof(random) < STAGING_HIDDEN_NAME_SIZE);
    snprintf(out_name, STAGING_HIDDEN_NAME_SIZE, "%s%016" PRIx64, prefix, random);
}

enum zt_status store_fail_errno(struct zt_error *error, int os_error, const char *what)
{
    bool full = os_error == ENOSPC || os_error == EDQUOT || os_error == EFBIG;

    zt_fail(error, full ? ZT_LIMIT : ZT_IO, NULL, ZT_NO_OFFSET, "%s: %s", what,
            strerrordesc_np(os_error));
    if (error != NULL)
        error->os_error = os_error;
    return full ? ZT_LIMIT : ZT_IO;
}
