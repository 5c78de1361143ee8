/* The table of keys and how to find one: by name, argument, variable, or by what it was probably
 * meant to be.
 *
 * ztserve.json, ztserve.schema.json and the README's list follow this table; a unit test compares
 * the two files. */
#include "config/schema.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "config/config.h"

#define PLACE(member) offsetof(struct config, member)
#define GIB           ((int64_t)1 << 30)
/* Far above any file system, and far from overflow in sums. */
#define BYTES_MAX ((int64_t)1 << 60)
#define DAY_S     86400
#define YEAR_S    (365 * DAY_S)
/* More than descriptors a process can have on Debian without asking. */
#define CONNECTIONS_MAX 1000000
#define THREADS_MAX     1024
#define UPLOADS_MAX     1000000
/* All keys are shorter than that; longer names are not compared with them. */
#define SUGGEST_MAX 48

static const char *verify_words[] = {"lazy", "eager", "off", NULL};
static const char *format_words[] = {"text", "json", NULL};
static const char *level_words[] = {"error", "warn", "info", "debug", NULL};

const struct config_key config_keys[] = {
    {.name = "root",
     .argument = "--root",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(root),
     .nullable = true,
     .meaning = "Folder of the models to serve."},
    {.name = "listen",
     .argument = "--listen",
     .type = CONFIG_TYPE_ADDRESS,
     .offset = PLACE(listen),
     .text = "127.0.0.1:8080",
     .meaning =
         "Address and port to listen on, as host:port or [address]:port; port 0 takes a free one."},
    {.name = "threads",
     .argument = "--threads",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(threads),
     .maximum = THREADS_MAX,
     .meaning = "Event loops; 0 takes as many as there are cores."},
    {.name = "workers",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(workers),
     .maximum = THREADS_MAX,
     .meaning = "Threads that hash, decode and validate, at least 3; 0 lets the server choose."},
    {.name = "verify",
     .argument = "--verify",
     .type = CONFIG_TYPE_CHOICE,
     .offset = PLACE(verify),
     .number = CONFIG_VERIFY_LAZY,
     .choices = verify_words,
     .meaning = "When digests are checked: lazy before the first byte is sent, eager from load on, "
                "or off."},
    {.name = "drain_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(drain_s),
     .maximum = DAY_S,
     .number = 30,
     .meaning = "How long open requests may go on after SIGTERM."},
    {.name = "writable",
     .argument = "--writable",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(writable),
     .meaning = "Whether models may be uploaded; on loopback addresses only."},
    {.name = "upload.max_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(upload.max_bytes),
     .minimum = 1,
     .maximum = BYTES_MAX,
     .number = 1024 * GIB,
     .meaning = "Largest upload that is taken."},
    {.name = "upload.reserve_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(upload.reserve_bytes),
     .nullable = true,
     .minimum = CONFIG_RESERVE_AUTOMATIC,
     .maximum = BYTES_MAX,
     .number = CONFIG_RESERVE_AUTOMATIC,
     .meaning = "Disk space that uploads leave free; null or -1 is 1 GiB or a twentieth of the "
                "disk, whichever is less."},
    {.name = "upload.open_per_client",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(upload.open_per_client),
     .maximum = UPLOADS_MAX,
     .number = 256,
     .meaning = "Most whole files that one client may be sending at a time; 0 sets no limit."},
    {.name = "upload.sessions_per_client",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(upload.sessions_per_client),
     .maximum = UPLOADS_MAX,
     .number = 64,
     .meaning = "Most unfinished uploads of several requests (streaming writer, resumable) of one "
                "client; 0 sets no limit."},
    {.name = "upload.expire_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(upload.expire_s),
     .minimum = 1,
     .maximum = YEAR_S,
     .number = 86400,
     .meaning =
         "How long an unfinished upload of several requests may stay idle until it is removed."},
    {.name = "upload.body_timeout_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(upload.body_timeout_s),
     .minimum = 1,
     .maximum = YEAR_S,
     .number = 86400,
     .meaning = "How long one body may take in all."},
    {.name = "log.format",
     .argument = "--log-format",
     .type = CONFIG_TYPE_CHOICE,
     .offset = PLACE(log.format),
     .number = CONFIG_LOG_TEXT,
     .choices = format_words,
     .meaning = "Form of the log's lines."},
    {.name = "log.level",
     .argument = "--log-level",
     .type = CONFIG_TYPE_CHOICE,
     .offset = PLACE(log.level),
     .number = CONFIG_LOG_INFO,
     .choices = level_words,
     .meaning =
         "What is logged: errors, also warnings, also one line a request (info), or everything."},
    {.name = "limits.header_timeout_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(limits.header_timeout_s),
     .minimum = 1,
     .maximum = DAY_S,
     .number = 30,
     .meaning = "How long a client may take to send the header of a request."},
    {.name = "limits.idle_timeout_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(limits.idle_timeout_s),
     .minimum = 1,
     .maximum = DAY_S,
     .number = 60,
     .meaning = "How long a connection may stay idle."},
    {.name = "limits.body_min_bytes_per_s",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.body_min_bytes_per_s),
     .maximum = GIB,
     .number = 512,
     .meaning = "Least average rate of a body; 0 sets none."},
    {.name = "limits.rate_grace_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(limits.rate_grace_s),
     .maximum = DAY_S,
     .number = 60,
     .meaning = "How long a transfer may take before its rate is looked at."},
    {.name = "limits.connections",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(limits.connections),
     .minimum = 1,
     .maximum = CONNECTIONS_MAX,
     .number = 10000,
     .meaning = "Most connections at a time, or what the descriptors allow if that is less."},
    {.name = "limits.connections_per_address",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(limits.connections_per_address),
     .maximum = CONNECTIONS_MAX,
     .meaning = "Most connections at a time from one address; 0 sets no limit."},
    {.name = "limits.send_buffer_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.send_buffer_bytes),
     .maximum = GIB,
     .number = 262144,
     .meaning = "Socket buffer for sending (SO_SNDBUF); 0 leaves it to the kernel, which suits "
                "long fat links."},
    {.name = "limits.decoded_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.decoded_bytes),
     .maximum = BYTES_MAX,
     .number = 16 * GIB,
     .meaning = "Largest component, once decoded, that is decoded in order to serve it."},
    {.name = "limits.decoded_cache_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.decoded_cache_bytes),
     .maximum = BYTES_MAX,
     .number = GIB / 4,
     .meaning = "Memory for decoded components that are kept for the next request."},
    {.name = "limits.digest_piece_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.digest_piece_bytes),
     .maximum = GIB,
     .number = 1048576,
     .meaning = "Pieces of components that the server finds SHA-256s of in the background, 65536 "
                "or more; 0 finds none."},
    {.name = "state.dir",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(state.dir),
     .nullable = true,
     .meaning = "Folder for what is remembered across restarts; null is .ztserve in the root."},
};

const size_t config_keys_count = sizeof(config_keys) / sizeof(config_keys[0]);

bool config_type_is_number(enum config_type type)
{
    return type == CONFIG_TYPE_COUNT || type == CONFIG_TYPE_BYTES || type == CONFIG_TYPE_SECONDS;
}

const struct config_key *config_key_find(const char *name)
{
    for (size_t i = 0; i < config_keys_count; i++)
        if (strcmp(config_keys[i].name, name) == 0)
            return &config_keys[i];
    return NULL;
}

const struct config_key *config_key_find_argument(const char *argument)
{
    for (size_t i = 0; i < config_keys_count; i++)
        if (config_keys[i].argument != NULL && strcmp(config_keys[i].argument, argument) == 0)
            return &config_keys[i];
    return NULL;
}

static bool names_variable(const char *name, const char *variable, size_t length)
{
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        char wanted = name[i] == '.' ? '_' : (char)toupper((unsigned char)name[i]);

        if (variable[i] != wanted)
            return false;
    }
    return true;
}

const struct config_key *config_key_find_variable(const char *variable, size_t length)
{
    static const char prefix[] = "ZTSERVE_";
    const size_t prefix_length = sizeof(prefix) - 1;

    if (length <= prefix_length || memcmp(variable, prefix, prefix_length) != 0)
        return NULL;
    for (size_t i = 0; i < config_keys_count; i++)
        if (names_variable(config_keys[i].name, variable + prefix_length, length - prefix_length))
            return &config_keys[i];
    return NULL;
}

bool config_group_exists(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < config_keys_count; i++)
        if (strncmp(config_keys[i].name, name, length) == 0 && config_keys[i].name[length] == '.')
            return true;
    return false;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* Levenshtein's distance, one row at a time; b is a key's name. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[SUGGEST_MAX + 1];
    size_t width = strlen(b);

    assert(width <= SUGGEST_MAX);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            size_t above = row[j + 1];

            row[j + 1] = smallest(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
            diagonal = above;
        }
    }
    return row[width];
}

const struct config_key *config_key_suggest(const char *name)
{
    size_t length = strlen(name);
    size_t best = length / 3 + 1; /* more than a third wrong is another word, not a slip */
    const struct config_key *nearest = NULL;

    if (length > SUGGEST_MAX)
        return NULL;
    for (size_t i = 0; i < config_keys_count; i++) {
        size_t distance = edit_distance(name, config_keys[i].name);

        if (distance < best || (distance == best && nearest == NULL)) {
            best = distance;
            nearest = &config_keys[i];
        }
    }
    return nearest;
}
