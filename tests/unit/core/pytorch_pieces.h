/* Pickles of torch written opcode by opcode, whole or broken in one place: for the tests of the
 * machine and the readers. */
#ifndef PYTORCH_PIECES_H
#define PYTORCH_PIECES_H

#include "support.h"

#include <string.h>

#include "zip_file.h"

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

#endif
