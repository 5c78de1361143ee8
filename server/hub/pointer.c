/* Writes pointers in the format of the Git LFS specification, version 1. */
#include "hub/pointer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/store.h"

/* The Hub accepts larger files only in LFS. */
#define REGULAR_BYTES_MAX ((uint64_t)10 << 20)

size_t hub_pointer_print(const struct hub_file *file, char out_text[HUB_POINTER_SIZE])
{
    return (size_t)snprintf(out_text, HUB_POINTER_SIZE,
                            "version https://git-lfs.github.com/spec/v1\n"
                            "oid sha256:%s\nsize %" PRIu64 "\n",
                            file->etag, file->identity.size_bytes);
}

/* Returns true for the files in the .gitattributes of a new Hub repository, besides tensor
 * files. */
static bool is_binary(const char *path)
{
    static const char *const extensions[] = {".7z",     ".arrow", ".bz2",       ".ftz",  ".gz",
                                             ".joblib", ".model", ".npy",       ".ot",   ".parquet",
                                             ".rar",    ".tar",   ".tgz",       ".wasm", ".xz",
                                             ".zip",    ".zst",   ".onnx_data", ".data"};
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot != NULL && i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (strcasecmp(dot, extensions[i]) == 0)
            return true;
    return false;
}

/* The Hub does not know .zt and .mag: for them only the size counts. */
static bool is_of_tensors(const char *path)
{
    static const char *const unknown[] = {".zt", ".mag"};
    size_t length;
    unsigned rank;

    if (!model_path_split(path, &length, &rank))
        return model_path_is_unsupported_format(path);
    if (model_rank_is_index(rank))
        return false;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        if (strcmp(model_extension(rank), unknown[i]) == 0)
            return false;
    return true;
}

bool hub_pointer_is_for(const struct hub_file *file)
{
    if (!file->has_sha256 || file->is_git)
        return false;
    return file->is_stated || file->identity.size_bytes > REGULAR_BYTES_MAX ||
           is_of_tensors(file->path) || is_binary(file->path);
}
