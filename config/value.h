/* Sets and reads single values of a configuration, checked against the key's type and bounds. */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include "config/config.h"
#include "config/schema.h"

/* Fills message (printf). */
void config_say(struct config_message *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same as an expression whose value is false, so that a check is one statement:
 * return config_fail(message, …). */
#define config_fail(...) (config_say(__VA_ARGS__), false)

/* Reads digits alone, as many as nine. False for another text, or a number above most. */
bool config_digits_read(const char *text, size_t length, uint32_t most, uint32_t *out_number);

/* In all of these, values is the struct config, or the struct config_upstream, that the key's
 * offset refers to. */

/* Sets a key to its default. */
void config_value_reset(void *values, const struct config_key *key);

/* Set a value of the key's own type. origin is the start of the message: "ztserve.json: listen",
 * "ZTSERVE_LISTEN". */
bool config_value_set_number(void *values, const struct config_key *key, int64_t number,
                             const char *origin, struct config_message *message);
bool config_value_set_bool(void *values, const struct config_key *key, bool value);
/* For a text that can be off. Returns true. */
bool config_value_set_off(void *values, const struct config_key *key);
/* Appends a word to a list. */
bool config_value_add_word(void *values, const struct config_key *key, const char *word,
                           const char *origin, struct config_message *message);
/* For text, address, choice, and lists and upstreams (their URLs) as words with commas between
 * them. */
bool config_value_set_text(void *values, const struct config_key *key, const char *text,
                           const char *origin, struct config_message *message);

/* Parses a value of any type from the text of a variable or argument. */
bool config_value_read(void *values, const struct config_key *key, const char *text,
                       const char *origin, struct config_message *message);

/* Copies a value of the key. Upstreams keep what reloads (config_upstreams_keep_fixed). */
void config_value_copy(void *values, const void *from, const struct config_key *key);

/* Says what the key accepts: "must be a whole number from 0 to 1024". Returns false. */
bool config_fail_expected(const struct config_key *key, const char *origin,
                          struct config_message *message);

/* The current value. */
int64_t config_value_number(const void *values, const struct config_key *key);
bool config_value_bool(const void *values, const struct config_key *key);
/* Text, address, the word of a choice, or the words of a list; NULL if it is not set. */
const char *config_value_text(const void *values, const struct config_key *key);

#endif
