/* Pickles as torch.save writes them, read by a machine that executes and imports nothing.
 *
 * A pickle is a program for a stack machine. This one knows the opcodes that torch needs, and a
 * table of names (names.c), and cannot do anything else: it calls no Python code, and a name that
 * is not in the table ends the reading. It builds values of one 8-byte word each; scalars stay
 * where they are in the pickle. Nothing recurses, every opcode takes constant time and memory apart
 * from the bytes and values that it consumes, and a budget bounds the memory of all values. Rules:
 * "pt §Pickle …". */
#ifndef ZT_PICKLE_PICKLE_H
#define ZT_PICKLE_PICKLE_H

#include "pickle/types.h"
#include "zt/source.h"

/* Positions take 30 bits of a value. */
#define PICKLE_BYTES_MAX (1ull << 30)
/* The most dimensions of a tensor. */
#define PICKLE_RANK_MAX 64

/* A value: its kind, the position in the pickle of the opcode that made it, and for containers,
 * names, storages and tensors an index. 0 means absent. */
typedef uint64_t pickle_value;

enum pickle_kind {
    PICKLE_NOTHING, /* of the value 0 */
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INTEGER,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_INERT, /* bytes, complex numbers, devices: nothing looks into it */
    PICKLE_NAME,  /* of the table: a class, a function, a dtype */
    PICKLE_LAYOUT,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_MAP, /* also a record of TorchScript */
    PICKLE_SET,
    PICKLE_STORAGE,
    PICKLE_TENSOR,
    PICKLE_MARK /* only on the stack */
};

static inline enum pickle_kind pickle_kind_of(pickle_value value)
{
    return (enum pickle_kind)(value & 15);
}

/* Position in the pickle's bytes. */
static inline uint32_t pickle_position_of(pickle_value value)
{
    return (uint32_t)(value >> 4) & (uint32_t)(PICKLE_BYTES_MAX - 1);
}

static inline uint32_t pickle_index_of(pickle_value value)
{
    return (uint32_t)(value >> 34);
}

/* An array of words. */
struct pickle_words {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

struct pickle {
    const uint8_t *bytes; /* borrowed; positions are relative to it */
    size_t length;
    /* Where bytes[0] is in the file. Of an inflated pickle, where its deflated bytes begin. */
    uint64_t file_offset;
    bool is_inflated;
    bool is_torchscript; /* knows the names of TorchScript too */
    bool is_legacy;      /* persistent ids have a sixth part */
    struct pickle_words stack;
    struct pickle_words memo;
    struct pickle_words arena;
    uint64_t budget_bytes; /* of the three together */
    uint32_t memo_count;
    uint32_t mark;          /* number of words of the stack up to and including the last mark */
    uint32_t first_storage; /* the chain of all storages, in order; 0: none */
    uint32_t last_storage;
    uint32_t position;   /* of the next opcode */
    uint32_t opcode_at;  /* of the present one */
    uint32_t stop_bytes; /* where the present pickle ends at the latest */
};

/* Starts a machine over bytes, of which there are at most PICKLE_BYTES_MAX. Freed with
 * pickle_free. */
void pickle_init(struct pickle *pickle, const uint8_t *bytes, size_t length, uint64_t file_offset);
void pickle_free(struct pickle *pickle);
/* Gives up stack and memo: only values are read from now on. */
void pickle_drop_stack(struct pickle *pickle);
/* The memory that it holds. */
uint64_t pickle_held_bytes(const struct pickle *pickle);

/* Runs one pickle, from pickle->position to its STOP, and moves there. Values of earlier pickles of
 * the same machine stay valid. ZT_INVALID, ZT_LIMIT, ZT_NO_MEMORY. */
enum zt_status pickle_run(struct pickle *pickle, pickle_value *out_value, struct zt_error *error);

/* Finds the end of the pickle at *position, without interpreting it, and moves *position there.
 * limit bounds the position. ZT_INVALID for an unknown opcode, and past limit. */
enum zt_status pickle_measure(struct zt_source *source, uint64_t *position, uint64_t limit,
                              struct zt_error *error);

/* Fails at a position of the pickle. */
enum zt_status pickle_fail(const struct pickle *pickle, uint32_t position, const char *rule,
                           struct zt_error *error, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* --- values --- */

bool pickle_is_true(const struct pickle *pickle, pickle_value value);
/* False if it is not an integer of 0 to 2^63 - 1. */
bool pickle_size_of(const struct pickle *pickle, pickle_value value, uint64_t *out_size);
/* Of an integer: its sign and magnitude. */
uint64_t pickle_magnitude(const struct pickle *pickle, pickle_value value, bool *out_negative);
double pickle_float(const struct pickle *pickle, pickle_value value);
/* Of a text; borrowed from the pickle, any bytes. */
struct zt_text pickle_text(const struct pickle *pickle, pickle_value value);
/* Of a layout; "torch.sparse_coo". */
struct zt_text pickle_layout(const struct pickle *pickle, pickle_value value);

/* The items of a tuple. The pointer is valid until a value is added. */
const pickle_value *pickle_tuple(const struct pickle *pickle, pickle_value value,
                                 uint32_t *out_count);

/* Walks the items of a tuple, list, set or map; a map has pairs of a key, then its value. */
struct pickle_items {
    uint32_t next; /* index of the next word */
    uint32_t left; /* words of this run */
    uint32_t run;  /* index of the run after this one; 0: none */
};
void pickle_items_begin(const struct pickle *pickle, pickle_value value,
                        struct pickle_items *out_items);
/* The next word; false at the end. In a map or set, a key of 0 means the entries of the value that
 * follows. */
bool pickle_items_next(const struct pickle *pickle, struct pickle_items *items,
                       pickle_value *out_value);

/* --- storages --- */

struct pickle_storage {
    struct zt_text key;
    const struct torch_type *type;
    uint64_t count;       /* in elements of the type */
    uint64_t view_offset; /* what of it this one is: in elements */
    uint64_t view_count;
    uint32_t place; /* what the reader found, set by pickle_storage_place */
    uint32_t index;
    uint32_t position;
};

/* Go through all storages that the pickle names, one for each time: begin with 0, and end when it
 * is 0 again. */
uint32_t pickle_storage_next(const struct pickle *pickle, uint32_t index);
void pickle_storage_read(const struct pickle *pickle, uint32_t index,
                         struct pickle_storage *out_storage);
/* Keeps a number of the reader's with the storage. */
void pickle_storage_place(struct pickle *pickle, uint32_t index, uint32_t place);

/* --- tensors --- */

enum pickle_form {
    PICKLE_DENSE,
    PICKLE_QUANTIZED,   /* by one scale and zero point */
    PICKLE_PER_CHANNEL, /* by parts: scales, zero points */
    PICKLE_COO,         /* parts: indices, values */
    PICKLE_CSR          /* parts: row pointers, column indices, values */
};

struct pickle_tensor {
    enum pickle_form form;
    const struct torch_type *type; /* not of sparse ones */
    uint32_t storage;              /* for pickle_storage_read; not of sparse ones */
    uint32_t position;
    uint64_t offset; /* in elements */
    uint8_t rank;
    uint8_t flip; /* enum zt_sign_flip */
    uint64_t shape[PICKLE_RANK_MAX];
    uint64_t strides[PICKLE_RANK_MAX]; /* in elements; not of sparse ones */
    pickle_value scale;                /* a float */
    pickle_value zero_point;           /* an integer */
    uint64_t axis;
    pickle_value parts[3];
};

/* Of a tensor. The machine has checked kinds, numbers and flags; not the bounds. */
void pickle_tensor_read(const struct pickle *pickle, pickle_value value,
                        struct pickle_tensor *out_tensor);

#endif
