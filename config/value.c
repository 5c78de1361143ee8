/* Stores values by the type and offset in the table of keys. A value that does not fit is rejected
 * with a message that says what the key accepts. */
#include "config/value.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config/upstreams.h"

/* More may not fit into 32 bits. */
#define DIGITS_MOST 9

/* Longer than the list of any choice's words. */
#define WORDS_SIZE 128
#define BLANKS     " \t\r\n"

void config_say(struct config_message *message, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message->text, sizeof(message->text), format, arguments);
    va_end(arguments);
    /* Names and values come from outside: the message must stay one line. */
    for (char *c = message->text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static void *place(void *values, const struct config_key *key)
{
    assert(key->offset < sizeof(struct config));
    return (char *)values + key->offset;
}

static const void *place_const(const void *values, const struct config_key *key)
{
    assert(key->offset < sizeof(struct config));
    return (const char *)values + key->offset;
}

static size_t text_size(const struct config_key *key)
{
    return key->text_size > 0 ? key->text_size : CONFIG_TEXT_SIZE;
}

static void store_number(void *values, const struct config_key *key, int64_t number)
{
    int choice = (int)number;
    bool truth = number != 0;

    assert(config_type_is_number(key->type) || key->type == CONFIG_TYPE_BOOL ||
           key->type == CONFIG_TYPE_CHOICE);
    if (key->type == CONFIG_TYPE_BOOL)
        memcpy(place(values, key), &truth, sizeof(truth));
    else if (key->type == CONFIG_TYPE_CHOICE)
        memcpy(place(values, key), &choice, sizeof(choice));
    else
        memcpy(place(values, key), &number, sizeof(number));
}

void config_value_reset(void *values, const struct config_key *key)
{
    if (key->type == CONFIG_TYPE_TEXT || key->type == CONFIG_TYPE_ADDRESS ||
        key->type == CONFIG_TYPE_LIST)
        snprintf(place(values, key), text_size(key), "%s", key->text != NULL ? key->text : "");
    else if (key->type == CONFIG_TYPE_UPSTREAMS)
        config_upstreams_reset(values);
    else
        store_number(values, key, key->number);
}

static void list_words(const struct config_key *key, char out_words[WORDS_SIZE])
{
    size_t length = 0;

    assert(key->type == CONFIG_TYPE_CHOICE);
    out_words[0] = '\0';
    for (size_t i = 0; key->choices[i] != NULL && length < WORDS_SIZE; i++) {
        const char *between = i == 0 ? "" : key->choices[i + 1] != NULL ? ", " : " or ";

        length += (size_t)snprintf(out_words + length, WORDS_SIZE - length, "%s%s", between,
                                   key->choices[i]);
    }
}

bool config_fail_expected(const struct config_key *key, const char *origin,
                          struct config_message *message)
{
    char words[WORDS_SIZE];

    switch (key->type) {
    case CONFIG_TYPE_BOOL:
        return config_fail(message, "%s: must be true or false", origin);
    case CONFIG_TYPE_CHOICE:
        list_words(key, words);
        return config_fail(message, "%s: must be %s", origin, words);
    case CONFIG_TYPE_TEXT:
    case CONFIG_TYPE_ADDRESS:
        return config_fail(message, "%s: must be a string", origin);
    case CONFIG_TYPE_UPSTREAMS:
        return config_fail(message,
                           "%s: must be a list of objects such as {\"url\": "
                           "\"https://huggingface.co\"}",
                           origin);
    case CONFIG_TYPE_LIST:
        return config_fail(message, "%s: must be a list of words without spaces and commas",
                           origin);
    default:
        return config_fail(message, "%s: must be a whole number from %" PRId64 " to %" PRId64,
                           origin, key->minimum, key->maximum);
    }
}

bool config_value_set_number(void *values, const struct config_key *key, int64_t number,
                             const char *origin, struct config_message *message)
{
    assert(config_type_is_number(key->type));
    if (number < key->minimum || number > key->maximum)
        return config_fail_expected(key, origin, message);
    store_number(values, key, number);
    return true;
}

bool config_value_set_bool(void *values, const struct config_key *key, bool value)
{
    assert(key->type == CONFIG_TYPE_BOOL);
    store_number(values, key, value);
    return true;
}

bool config_value_set_off(void *values, const struct config_key *key)
{
    assert(key->can_be_off);
    memset(place(values, key), 0, text_size(key));
    return true;
}

static bool set_choice(void *values, const struct config_key *key, const char *text,
                       const char *origin, struct config_message *message)
{
    assert(key->type == CONFIG_TYPE_CHOICE);
    for (int i = 0; key->choices[i] != NULL; i++) {
        if (strcmp(key->choices[i], text) == 0) {
            store_number(values, key, i);
            return true;
        }
    }
    return config_fail_expected(key, origin, message);
}

bool config_value_add_word(void *values, const struct config_key *key, const char *word,
                           const char *origin, struct config_message *message)
{
    char *list = place(values, key);
    const size_t length = strlen(list);
    const size_t word_length = strlen(word);

    assert(key->type == CONFIG_TYPE_LIST);
    if (word_length == 0 || word[strcspn(word, BLANKS ",")] != '\0')
        return config_fail_expected(key, origin, message);
    if (length + 1 + word_length >= text_size(key))
        return config_fail(message, "%s: is longer than %zu bytes in total", origin,
                           text_size(key) - 1);
    snprintf(list + length, text_size(key) - length, "%s%s", length > 0 ? "," : "", word);
    return true;
}

/* Words with commas between them, and blanks around them; an empty text is an empty list. */
static bool set_list(void *values, const struct config_key *key, const char *text,
                     const char *origin, struct config_message *message)
{
    char word[CONFIG_TEXT_SIZE];
    const char *position = text;
    const char *found;
    size_t length;

    assert(key->type == CONFIG_TYPE_LIST);
    config_value_reset(values, key);
    while ((found = config_list_next(&position, &length)) != NULL) {
        snprintf(word, sizeof(word), "%.*s", (int)length, found);
        if (!config_value_add_word(values, key, word, origin, message))
            return false;
    }
    return true;
}

const char *config_list_next(const char **position, size_t *out_length)
{
    const char *word = *position + strspn(*position, BLANKS);
    const size_t whole = strcspn(word, ",");
    size_t length = whole;

    if (*word == '\0')
        return NULL;
    while (length > 0 && strchr(BLANKS, word[length - 1]) != NULL)
        length--;
    *out_length = length;
    *position = word + whole + (word[whole] == ',');
    return word;
}

bool config_value_set_text(void *values, const struct config_key *key, const char *text,
                           const char *origin, struct config_message *message)
{
    struct config_listen listen;
    struct config_message reason;

    if (key->type == CONFIG_TYPE_CHOICE)
        return set_choice(values, key, text, origin, message);
    if (key->type == CONFIG_TYPE_LIST)
        return set_list(values, key, text, origin, message);
    if (key->type == CONFIG_TYPE_UPSTREAMS)
        return config_upstreams_add_urls(values, text, origin, message);
    if (key->can_be_off && (text[0] == '\0' || strcmp(text, "false") == 0))
        return config_value_set_off(values, key);
    if (text[0] == '\0')
        return config_fail(message, "%s: must not be empty", origin);
    if (strlen(text) >= text_size(key))
        return config_fail(message, "%s: is longer than %zu bytes", origin, text_size(key) - 1);
    if (key->type == CONFIG_TYPE_ADDRESS && !config_listen_wants_port(text) &&
        !config_listen_parse(text, &listen, &reason))
        return config_fail(message, "%s: %s", origin, reason.text);
    memcpy(place(values, key), text, strlen(text) + 1);
    return true;
}

bool config_digits_read(const char *text, size_t length, uint32_t most, uint32_t *out_number)
{
    uint32_t number = 0;

    if (length < 1 || length > DIGITS_MOST)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    if (number > most)
        return false;
    *out_number = number;
    return true;
}

/* Digits after an optional minus: strtoll alone would accept blanks, a plus and trailing text. */
static bool read_number(const char *text, int64_t *out_number)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    long long number;

    if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    number = strtoll(text, NULL, 10);
    if (errno != 0)
        return false;
    *out_number = number;
    return true;
}

static bool read_bool(const char *text, bool *out_value)
{
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    bool no = strcmp(text, "false") == 0 || strcmp(text, "0") == 0;

    if (!yes && !no)
        return false;
    *out_value = yes;
    return true;
}

bool config_value_read(void *values, const struct config_key *key, const char *text,
                       const char *origin, struct config_message *message)
{
    int64_t number;
    bool value;

    if (config_type_is_number(key->type)) {
        if (!read_number(text, &number))
            return config_fail_expected(key, origin, message);
        return config_value_set_number(values, key, number, origin, message);
    }
    if (key->type == CONFIG_TYPE_BOOL) {
        if (!read_bool(text, &value))
            return config_fail_expected(key, origin, message);
        return config_value_set_bool(values, key, value);
    }
    return config_value_set_text(values, key, text, origin, message);
}

static void put_in_force(void *in_force, const void *wanted, const struct config_key *key)
{
    if (config_type_is_number(key->type))
        __atomic_store_n((int64_t *)place(in_force, key), config_value_number(wanted, key),
                         __ATOMIC_RELAXED);
    else if (key->type == CONFIG_TYPE_BOOL)
        __atomic_store_n((bool *)place(in_force, key), config_value_bool(wanted, key),
                         __ATOMIC_RELAXED);
    else if (key->type == CONFIG_TYPE_CHOICE)
        memcpy(place(in_force, key), place_const(wanted, key), sizeof(int));
}

void config_put_in_force(struct config *in_force, const struct config *wanted)
{
    for (size_t i = 0; i < config_keys_count; i++)
        if (config_keys[i].reloads)
            put_in_force(in_force, wanted, &config_keys[i]);
    for (unsigned n = 0; n < in_force->upstream_count; n++)
        for (size_t i = 0; i < config_upstream_keys_count; i++)
            if (config_upstream_keys[i].reloads)
                put_in_force(&in_force->upstreams[n], &wanted->upstreams[n],
                             &config_upstream_keys[i]);
}

void config_value_copy(void *values, const void *from, const struct config_key *key)
{
    if (config_type_is_number(key->type))
        memcpy(place(values, key), place_const(from, key), sizeof(int64_t));
    else if (key->type == CONFIG_TYPE_BOOL)
        memcpy(place(values, key), place_const(from, key), sizeof(bool));
    else if (key->type == CONFIG_TYPE_CHOICE)
        memcpy(place(values, key), place_const(from, key), sizeof(int));
    else if (key->type == CONFIG_TYPE_UPSTREAMS)
        config_upstreams_keep_fixed(values, from);
    else
        memcpy(place(values, key), place_const(from, key), text_size(key));
}

void config_keep_fixed(struct config *wanted, const struct config *in_force)
{
    for (size_t i = 0; i < config_keys_count; i++)
        if (!config_keys[i].reloads)
            config_value_copy(wanted, in_force, &config_keys[i]);
}

int64_t config_value_number(const void *values, const struct config_key *key)
{
    int64_t number;

    assert(config_type_is_number(key->type));
    memcpy(&number, place_const(values, key), sizeof(number));
    return number;
}

bool config_value_bool(const void *values, const struct config_key *key)
{
    bool value;

    assert(key->type == CONFIG_TYPE_BOOL);
    memcpy(&value, place_const(values, key), sizeof(value));
    return value;
}

const char *config_value_text(const void *values, const struct config_key *key)
{
    const char *text = place_const(values, key);
    int choice;

    assert(key->type != CONFIG_TYPE_UPSTREAMS);
    if (key->type == CONFIG_TYPE_CHOICE) {
        memcpy(&choice, text, sizeof(choice));
        return key->choices[choice];
    }
    return text[0] != '\0' ? text : NULL;
}
