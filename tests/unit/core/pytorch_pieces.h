/* Pickles of torch written opcode by opcode, whole or broken in one place: for the tests of the
 * machine and the readers. */
#ifndef PYTORCH_PIECES_H
#define PYTORCH_PIECES_H

#include "tests.h"

#include <string.h>

#include "zip_file.h"
#include "zt/model.h"

#define TEXT(length, text) "X" length "\0\0\0" text
#define A                  TEXT("\x01", "a")
#define ORDERED            "ccollections\nOrderedDict\n"
#define HOOKS              "\x89" ORDERED ")R"

/* A persistent id; of count, its opcode too. */
#define STORAGE_OF(class, key, count) \
    "(" TEXT("\x07", "storage") "c" class "\n" TEXT("\x01", key) TEXT("\x03", "cpu") count "tQ"
#define STORAGE(class, count) STORAGE_OF(class, "0", "K" count)
#define FLOAT_STORAGE         STORAGE("torch\nFloatStorage", "\x04")
#define REBUILD               "ctorch._utils\n_rebuild_tensor_v2\n("
/* Of shape (2, 2) over four floats. */
#define ROWS                    "K\x02K\x01\x86"
#define COLUMNS                 "K\x01K\x02\x86"
#define TENSOR(offset, strides) REBUILD FLOAT_STORAGE "K" offset "K\x02K\x02\x86" strides HOOKS "tR"
#define PLAIN                   TENSOR("\0", ROWS)

/* Of one dimension. */
#define LINE(class, count, shape) \
    REBUILD STORAGE("torch\n" class "Storage", count) "K\0" shape "K\x01\x85" HOOKS "tR"

#define LEGACY_MAGIC   "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define LEGACY_VERSION "\x80\x02M\xe9\x03."
#define LEGACY_FACTS   "\x80\x02}."
#define LEGACY_HEAD    LEGACY_MAGIC LEGACY_VERSION LEGACY_FACTS

/* Adds an entry of bytes. */
static inline void pytorch_entry(struct zip_file *zip, const char *name, enum zip_file_kind kind,
                                 const void *bytes, size_t length)
{
    const struct bytes content = {(uint8_t *)(uintptr_t)bytes, length};

    zip_file_add(zip, name, kind, &content);
}

/* The entries of an archive, in their order. */
enum { PICKLE, STORED, VERSION, CONSTANTS };

/* What an archive is made of; NULL leaves an entry out. */
struct made {
    const char *pickle;
    size_t pickle_length;
    size_t storage_length;
    const char *version;
    const char *byteorder;
    bool is_torchscript;
    enum zip_file_kind kind;
};

static inline void make(struct zip_file *zip, const struct made *made)
{
    static const uint8_t floats[64] = {0, 0, 0x80, 0x3f};

    pytorch_entry(zip, "a/data.pkl", made->kind, made->pickle, made->pickle_length);
    if (made->storage_length > 0)
        pytorch_entry(zip, "a/data/0", made->kind, floats, made->storage_length);
    if (made->version != NULL)
        pytorch_entry(zip, "a/version", ZIP_FILE_STORED, made->version, strlen(made->version));
    if (made->byteorder != NULL)
        pytorch_entry(zip, "a/byteorder", ZIP_FILE_STORED, made->byteorder,
                      strlen(made->byteorder));
    if (made->is_torchscript)
        pytorch_entry(zip, "a/constants.pkl", ZIP_FILE_STORED, "\x80\x02).", 4);
    zip_file_end(zip, "", false);
}

#define MADE(text)                                                                                \
    {                                                                                             \
        .pickle = text, .pickle_length = sizeof(text) - 1, .storage_length = 16, .version = "3\n" \
    }

static const struct made good = MADE("\x80\x02" PLAIN ".");

static inline void assert_opens(const struct made *made, struct zt_model **out_model)
{
    struct zip_file zip = {0};
    struct zt_error error;

    zt_error_clear(&error);
    make(&zip, made);
    if (bytes_open(&zip.bytes, zip.bytes.length, out_model, &error) != ZT_OK)
        fail_msg("%s: %s", error.rule, error.message);
    zip_file_free(&zip);
}

/* Refused at a position of the pickle. */
static inline void assert_pickle(const struct made *made, const char *rule, size_t position)
{
    struct zip_file zip = {0};

    make(&zip, made);
    bytes_assert_refused(&zip.bytes, rule, zip.data_at[PICKLE] + position);
    zip_file_free(&zip);
}

#endif
