/* The configuration: defaults, then a JSON file, then the environment, then arguments, and finally
 * config_validate.
 *
 * One table lists every key (schema.c). The structure holds its texts itself, so it can be copied
 * by assignment and needs no freeing. A function that fails returns false, leaves the configuration
 * unchanged and fills the caller's config_message with one line, without a newline. Nothing here
 * logs or exits. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* PATH_MAX of Linux: a longer path cannot be opened anyway. */
#define CONFIG_TEXT_SIZE 4096
/* A path and a sentence. */
#define CONFIG_MESSAGE_SIZE (CONFIG_TEXT_SIZE + 512)
/* upload.reserve_bytes: 1 GiB or a twentieth of the disk, whichever is less. */
#define CONFIG_RESERVE_AUTOMATIC (-1)
/* The least limits.digest_piece_bytes other than 0. */
#define CONFIG_DIGEST_PIECE_MIN 65536
#define CONFIG_UPSTREAMS_MAX    8
/* A name becomes a folder and a label of metrics. */
#define CONFIG_UPSTREAM_NAME_SIZE 64
#define CONFIG_UPSTREAM_TEXT_SIZE 1024

enum config_verify { CONFIG_VERIFY_LAZY, CONFIG_VERIFY_EAGER, CONFIG_VERIFY_OFF };
enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JSON };
enum config_log_level { CONFIG_LOG_ERROR, CONFIG_LOG_WARN, CONFIG_LOG_INFO, CONFIG_LOG_DEBUG };

enum config_upstream_kind { CONFIG_UPSTREAM_HUB, CONFIG_UPSTREAM_ZTSERVE, CONFIG_UPSTREAM_S3 };

/* A server whose repositories this one mirrors. upstreams.c states meaning and bounds. After a
 * reload, threads read numbers and flags by config_number and config_flag. */
struct config_upstream {
    char name[CONFIG_UPSTREAM_NAME_SIZE]; /* unique; by default the host of url */
    int kind;                             /* enum config_upstream_kind */
    /* http(s)://host[:port][/path], or s3://bucket[/prefix]; without a '/' at its end. */
    char url[CONFIG_UPSTREAM_TEXT_SIZE];
    char match[CONFIG_UPSTREAM_TEXT_SIZE];      /* a list of globs; empty: every repository */
    char token_file[CONFIG_UPSTREAM_TEXT_SIZE]; /* empty: no token */
    int64_t keep;                               /* bytes on disk; 0: what leaves the reserve */
    int64_t revalidate_s;
    bool offline;
    bool strict;
    char ca[CONFIG_UPSTREAM_TEXT_SIZE];    /* empty: the system's authorities */
    char proxy[CONFIG_UPSTREAM_TEXT_SIZE]; /* empty: none */
};

/* Members are named after the keys, units included; schema.c states meaning and bounds. */
struct config {
    char root[CONFIG_TEXT_SIZE]; /* empty: not set, `serve` needs it */
    char listen[CONFIG_TEXT_SIZE];
    int64_t threads; /* 0: one per processor */
    int64_t workers; /* 0: the server decides */
    int verify;      /* enum config_verify */
    int64_t drain_s;
    int64_t drain_delay_s;
    bool writable;
    bool shared;
    bool sandbox;
    bool ui;
    char hosts[CONFIG_TEXT_SIZE];
    char base_path[CONFIG_TEXT_SIZE]; /* "/models", or empty */
    char trusted_proxies[CONFIG_TEXT_SIZE];
    struct {
        char origins[CONFIG_TEXT_SIZE];
    } cors;
    struct {
        char tokens[CONFIG_TEXT_SIZE]; /* empty: all clients have all rights */
        char jwks[CONFIG_TEXT_SIZE];   /* empty: no JSON Web Tokens */
        char issuer[CONFIG_TEXT_SIZE];
        char audience[CONFIG_TEXT_SIZE];
        int64_t skew_s;
    } auth;
    struct {
        char cert[CONFIG_TEXT_SIZE]; /* empty: no TLS */
        char key[CONFIG_TEXT_SIZE];
        char client_ca[CONFIG_TEXT_SIZE]; /* empty: no client certificates */
    } tls;
    struct {
        int64_t max_bytes;
        int64_t reserve_bytes;       /* or CONFIG_RESERVE_AUTOMATIC */
        int64_t open_per_client;     /* 0: no limit */
        int64_t sessions_per_client; /* 0: no limit */
        int64_t expire_s;
        int64_t body_timeout_s;
    } upload;
    struct {
        int format; /* enum config_log_format */
        int level;  /* enum config_log_level */
    } log;
    struct {
        int64_t header_timeout_s;
        int64_t idle_timeout_s;
        int64_t body_min_bytes_per_s;   /* 0: none */
        int64_t reader_min_bytes_per_s; /* 0: none */
        int64_t rate_grace_s;
        int64_t connections;
        int64_t connections_per_address; /* 0: no limit */
        int64_t send_buffer_bytes;       /* 0: left to the kernel */
        int64_t decoded_bytes;
        int64_t decoded_cache_bytes;
        int64_t statistics_bytes;
        int64_t manifest_bytes;
        int64_t digest_piece_bytes; /* 0: no piece digests */
    } limits;
    struct {
        char dir[CONFIG_TEXT_SIZE]; /* empty: .ztserve in the root */
    } state;
    struct {
        bool public;
    } metrics;
    /* The S3 API: path, listen, bucket and keys; the others are of a root "s3://bucket/prefix". */
    struct {
        char path[CONFIG_TEXT_SIZE];   /* "/s3"; empty: off */
        char listen[CONFIG_TEXT_SIZE]; /* empty: none */
        char bucket[CONFIG_TEXT_SIZE];
        char keys[CONFIG_TEXT_SIZE];     /* empty: no access keys */
        char endpoint[CONFIG_TEXT_SIZE]; /* empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS */
        char region[CONFIG_TEXT_SIZE];   /* empty: AWS_REGION, AWS_DEFAULT_REGION, us-east-1 */
        bool path_style;
        int64_t poll_s;
        bool single_writer;
        char claims_bucket[CONFIG_TEXT_SIZE]; /* empty: the root's */
        char ca[CONFIG_TEXT_SIZE];            /* empty: AWS_CA_BUNDLE, or the system's */
        char proxy[CONFIG_TEXT_SIZE];         /* empty: none */
        int64_t connections;
        int64_t part_bytes;
        bool ready_when_away;
    } s3;
    struct {
        bool views;
        int64_t shard_bytes;
        int64_t regular_bytes;
        int64_t staged_per_client;
        int64_t part_bytes;
        bool xet;
    } hub;
    struct {
        int64_t keep;       /* commits of each repository; 0: none, and there are no versions */
        int64_t keep_s;     /* 0: no limit */
        int64_t keep_bytes; /* 0: no limit */
    } versions;
    struct {
        char dir[CONFIG_TEXT_SIZE]; /* empty: the state folder's "cache" */
        int64_t max_bytes;          /* 0: what leaves enough free */
    } cache;
    struct config_upstream upstreams[CONFIG_UPSTREAMS_MAX]; /* the first that matches is asked */
    unsigned upstream_count;
};

struct config_message {
    char text[CONFIG_MESSAGE_SIZE];
};

void config_defaults(struct config *out_config);

/* Sets the keys that a JSON file contains. Errors name the file, and:
 *   - invalid JSON: line and column;
 *   - a repeated key: line, column and the key;
 *   - an unknown key, a wrong type, a value out of bounds: line, and the key in full
 *     ("upload.max_bytes"). */
bool config_load_file(struct config *config, const char *path, struct config_message *message);

/* Sets the keys that have ZTSERVE_… variables in environment (NULL-terminated "NAME=value", like
 * environ), and takes the port of a "host:$PORT" from the variable PORT. Unknown variables are
 * ignored; warn receives one line about each, without a newline, valid during the call. It may be
 * NULL. */
bool config_load_environment(struct config *config, char *const *environment,
                             void (*warn)(const char *line), struct config_message *message);

enum config_argument {
    CONFIG_ARGUMENT_UNKNOWN,
    CONFIG_ARGUMENT_FLAG, /* has no value: --writable */
    CONFIG_ARGUMENT_VALUE /* takes a value: --listen 127.0.0.1:8080 */
};

/* The kind of an argument, named with its dashes: "--listen". */
enum config_argument config_argument_kind(const char *name);

/* Sets the key of an argument; value is NULL for a flag. */
bool config_set_argument(struct config *config, const char *name, const char *value,
                         struct config_message *message);

/* Checks the rules between keys, once all sources have been read. Only `serve` needs root, so it
 * checks that itself. */
bool config_validate(const struct config *config, struct config_message *message);

/* A number of a configuration that config_put_in_force may be changing, and a flag of one. */
static inline int64_t config_number(const int64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_RELAXED);
}

static inline bool config_flag(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* Copies the numbers, flags and choices of the keys that reload (config_key.reloads), also of
 * upstreams, which must be the same ones. Other threads may read numbers and flags at the same
 * time, by config_number and config_flag. Texts and lists are not changed: their users have
 * separate copies. */
void config_put_in_force(struct config *in_force, const struct config *wanted);

/* Takes over what only a restart can change from the configuration in force: wanted is then what
 * would be in force after a reload. */
void config_keep_fixed(struct config *wanted, const struct config *in_force);

/* The word at *position in the value of a key that is a list, and moves on to the next. NULL at the
 * end; the word is not terminated. Begin with the key's text in *position. */
const char *config_list_next(const char **position, size_t *out_length);

/* Prints the configuration as JSON that config_load_file reads. False if writing failed. */
bool config_print(const struct config *config, FILE *stream);

struct config_listen {
    char host[256]; /* a name or address, without brackets */
    uint16_t port;  /* 0: any free port */
};

/* Parses "host:port": "127.0.0.1:0", "[::1]:8080". */
bool config_listen_parse(const char *text, struct config_listen *out_listen,
                         struct config_message *message);

/* Whether the text is "host:$PORT": config_load_environment puts the variable PORT in its place. */
bool config_listen_wants_port(const char *text);

/* True for 127.0.0.0/8, ::1 and localhost. Names are not looked up: no other name counts as
 * loopback. */
bool config_listen_is_loopback(const struct config_listen *listen);

#endif
