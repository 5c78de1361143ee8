/* The table of keys: everything that can be set, with its type, place, bounds, default and meaning.
 */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a value is written and stored: text and address as char[CONFIG_TEXT_SIZE], bool as bool,
 * choice as int (the index of the word), the others as int64_t. */
enum config_type {
    CONFIG_TYPE_TEXT,
    CONFIG_TYPE_ADDRESS,
    CONFIG_TYPE_BOOL,
    CONFIG_TYPE_COUNT,
    CONFIG_TYPE_BYTES,
    CONFIG_TYPE_SECONDS,
    CONFIG_TYPE_CHOICE
};

struct config_key {
    const char *name;     /* "upload.max_bytes": at most one group */
    const char *argument; /* "--listen", or NULL when no argument sets it */
    enum config_type type;
    size_t offset;        /* in struct config */
    bool nullable;        /* null in the file means the default */
    int64_t minimum;      /* of numbers */
    int64_t maximum;      /* of numbers */
    int64_t number;       /* default of numbers, bool and choice */
    const char *text;     /* default of text and address; NULL: not set */
    const char **choices; /* words of a choice, NULL at the end */
    const char *meaning;  /* one line */
};

extern const struct config_key config_keys[];
extern const size_t config_keys_count;

/* Whether a key's value is an int64_t. */
bool config_type_is_number(enum config_type type);

/* The key of that full name, argument ("--listen") or variable ("ZTSERVE_LISTEN"); NULL when there
 * is none. */
const struct config_key *config_key_find(const char *name);
const struct config_key *config_key_find_argument(const char *argument);
const struct config_key *config_key_find_variable(const char *variable, size_t length);

/* Whether some key lies in the group of that name. */
bool config_group_exists(const char *name);

/* The key whose name is nearest to a mistyped one, or NULL when none is near. */
const struct config_key *config_key_suggest(const char *name);

#endif
