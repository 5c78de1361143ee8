/* An origin is scheme://host[:port] in small letters, without the scheme's own port and without a
 * path: so it can be compared with what browsers send (RFC 6454 section 6.2). */
#include "config/browsers.h"

#include <stdint.h>
#include <string.h>

#include "config/value.h"

#define SMALL  "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
/* Names, and addresses of IPv4. */
#define HOST_CHARACTERS SMALL "ABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS ".-_"

struct word {
    const char *text;
    size_t length;
};

static bool is_word(const struct word *word, const char *text)
{
    return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

static bool ends_with(const struct word *word, const char *end)
{
    const size_t length = strlen(end);

    return word->length >= length && memcmp(word->text + word->length - length, end, length) == 0;
}

static bool begins_with(const struct word *word, const char *start)
{
    return word->length >= strlen(start) && memcmp(word->text, start, strlen(start)) == 0;
}

/* The length of a name, an address or "[address]" at the start of text; 0: none. */
static size_t host_length(const char *text, const char *end)
{
    size_t length;

    if (text < end && *text == '[') {
        length = 1 + strspn(text + 1, DIGITS "abcdefABCDEF:.");
        return text + length < end && text[length] == ']' && length > 2 ? length + 1 : 0;
    }
    length = strspn(text, HOST_CHARACTERS);
    return length < (size_t)(end - text) ? length : (size_t)(end - text);
}

/* Returns true if what is left is nothing, or ":port". */
static bool is_port(const char *text, const char *end)
{
    const size_t digits = text < end ? strspn(text + 1, DIGITS) : 0;
    uint32_t port;

    return text == end || (*text == ':' && digits <= 5 && text + 1 + digits == end &&
                           config_digits_read(text + 1, digits, UINT16_MAX, &port));
}

bool config_is_host_and_port(const char *text, size_t length)
{
    const char *end = text + length;
    const size_t host = host_length(text, end);

    return host > 0 && is_port(text + host, end);
}

/* The reason why a word is not an origin, or NULL. */
static const char *fault_of_origin(const struct word *word)
{
    const bool is_secure = begins_with(word, "https://");
    const char *end = word->text + word->length;
    const char *host = word->text + strlen(is_secure ? "https://" : "http://");
    size_t length;

    if (is_word(word, "*"))
        return NULL;
    if (!is_secure && !begins_with(word, "http://"))
        return "must begin with https:// or http://";
    length = host_length(host, end);
    if (length == 0)
        return "has no host";
    if (memchr(host + length, '/', (size_t)(end - host) - length) != NULL)
        return "must end after the host and port, without a slash";
    if (!is_port(host + length, end))
        return "is not an origin as browsers send it, such as https://example.org:8443";
    for (const char *at = host; at < end; at++)
        if (*at >= 'A' && *at <= 'Z')
            return "must be lower-case";
    if (ends_with(word, is_secure ? ":443" : ":80"))
        return "must omit the scheme's default port";
    return NULL;
}

static const char *fault_of_host(const struct word *word)
{
    if (begins_with(word, "http://") || begins_with(word, "https://"))
        return "must be a name without a scheme";
    return config_is_host_and_port(word->text, word->length)
               ? NULL
               : "is not a name or address, such as models.example.org or [::1]";
}

static bool check_words(const char *key, const char *list,
                        const char *(*fault_of)(const struct word *word),
                        struct config_message *message)
{
    struct word word;

    while ((word.text = config_list_next(&list, &word.length)) != NULL) {
        const char *fault = fault_of(&word);

        if (fault != NULL)
            return config_fail(message, "%s: \"%.*s\" %s", key,
                               (int)(word.length < 200 ? word.length : 200), word.text, fault);
    }
    return true;
}

bool config_validate_browsers(const struct config *config, struct config_message *message)
{
    return check_words("cors.origins", config->cors.origins, fault_of_origin, message) &&
           check_words("hosts", config->hosts, fault_of_host, message);
}
