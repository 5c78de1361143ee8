/* The table of keys: type, place, bounds, default and meaning of everything that can be set. */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a value is written and stored: text and address as char[CONFIG_TEXT_SIZE], a list of words as
 * one text with commas between them (config_list_next), bool as bool, choice as int (the index of
 * the word), upstreams as upstreams and upstream_count, the others as int64_t. */
enum config_type {
    CONFIG_TYPE_TEXT,
    CONFIG_TYPE_ADDRESS,
    CONFIG_TYPE_LIST,
    CONFIG_TYPE_BOOL,
    CONFIG_TYPE_COUNT,
    CONFIG_TYPE_BYTES,
    CONFIG_TYPE_SECONDS,
    CONFIG_TYPE_CHOICE,
    CONFIG_TYPE_UPSTREAMS
};

struct config_key {
    const char *name;     /* "upload.max_bytes": at most one group */
    const char *argument; /* "--listen", or NULL if no argument sets it */
    enum config_type type;
    size_t offset;        /* in struct config, or struct config_upstream */
    size_t text_size;     /* of a text or list; 0: CONFIG_TEXT_SIZE */
    bool nullable;        /* null in the file sets the default */
    bool can_be_off;      /* a text: false, or an empty text, stores an empty text */
    bool reloads;         /* SIGHUP puts a change in force; others wait for a restart */
    int64_t minimum;      /* of numbers */
    int64_t maximum;      /* of numbers */
    int64_t number;       /* default of numbers, bool and choice */
    const char *text;     /* default of text and address; NULL: not set */
    const char **choices; /* words of a choice, terminated by NULL */
    const char *meaning;  /* one line */
};

extern const struct config_key config_keys[];
extern const size_t config_keys_count;

/* The keys of one upstream, with offsets in struct config_upstream. */
extern const struct config_key config_upstream_keys[];
extern const size_t config_upstream_keys_count;

/* Whether values of the type are an int64_t. */
bool config_type_is_number(enum config_type type);

/* The key with this full name, argument ("--listen") or variable ("ZTSERVE_LISTEN"), or NULL. */
const struct config_key *config_key_find(const char *name);
const struct config_key *config_key_find_argument(const char *argument);
const struct config_key *config_key_find_variable(const char *variable, size_t length);

/* Whether there is a group of this name. */
bool config_group_exists(const char *name);

/* The key whose name is closest to a mistyped one, or NULL if none is close. */
const struct config_key *config_key_suggest(const char *name);

/* The same for the keys of an upstream. */
const struct config_key *config_upstream_key_find(const char *name);
const struct config_key *config_upstream_key_suggest(const char *name);

#endif
