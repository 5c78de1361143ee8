/* The table of keys, and lookups by name, argument, variable, or mistyped name.
 *
 * ztserve.json, ztserve.schema.json and the documentation follow this table; a unit test compares
 * the two files with it. */
#include "config/schema.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "config/config.h"

#define PLACE(member) offsetof(struct config, member)
#define GIB           ((int64_t)1 << 30)
/* Larger than any file system, and small enough that sums do not overflow. */
#define BYTES_MAX ((int64_t)1 << 60)
#define DAY_S     86400
#define YEAR_S    (365 * DAY_S)
/* About as many descriptors as a process may have on Debian by default. */
#define CONNECTIONS_MAX 1000000
#define THREADS_MAX     1024
#define UPLOADS_MAX     1000000
/* Longer than any key; longer names get no suggestion. */
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
     .meaning =
         "Folder of the models to serve, or a bucket of an object store: s3://bucket/prefix."},
    {.name = "listen",
     .argument = "--listen",
     .type = CONFIG_TYPE_ADDRESS,
     .offset = PLACE(listen),
     .text = "127.0.0.1:8080",
     .meaning =
         "Address and port to listen on, as host:port or [address]:port; port 0 picks a free one, "
         "$PORT stands for the variable PORT."},
    {.name = "threads",
     .argument = "--threads",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(threads),
     .maximum = THREADS_MAX,
     .meaning = "Event loops; 0 starts one per processor."},
    {.name = "workers",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(workers),
     .maximum = THREADS_MAX,
     .meaning = "Threads that hash, decode and validate, at least 4; 0 lets the server decide."},
    {.name = "verify",
     .argument = "--verify",
     .type = CONFIG_TYPE_CHOICE,
     .offset = PLACE(verify),
     .number = CONFIG_VERIFY_LAZY,
     .choices = verify_words,
     .meaning = "When digests are checked: before the first byte of a component is sent (lazy), as "
                "soon as a model is loaded (eager), or never (off)."},
    {.name = "drain_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(drain_s),
     .reloads = true,
     .maximum = DAY_S,
     .number = 30,
     .meaning = "How long open requests may continue after SIGTERM."},
    {.name = "drain_delay_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(drain_delay_s),
     .reloads = true,
     .maximum = DAY_S,
     .meaning = "How long the server keeps listening after SIGTERM while /readyz answers 503, so "
                "that load balancers can look elsewhere; drain_s begins afterwards."},
    {.name = "writable",
     .argument = "--writable",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(writable),
     .meaning = "Whether models may be uploaded; with tokens, or on loopback addresses only."},
    {.name = "sandbox",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(sandbox),
     .number = 1,
     .meaning = "Whether the process gives up what it does not need (new privileges, files outside "
                "its folders, unused system calls), as far as the kernel can."},
    {.name = "ui",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(ui),
     .reloads = true,
     .number = 1,
     .meaning = "Whether browsers get the viewer, at / and below /ui/."},
    {.name = "hosts",
     .type = CONFIG_TYPE_LIST,
     .offset = PLACE(hosts),
     .reloads = true,
     .meaning =
         "Names that requests may give as Host. If empty, writes without tokens to a loopback "
         "address need a loopback name, a name without a dot (no public domain can be one) "
         "or the listening address; all other requests may give any."},
    {.name = "base_path",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(base_path),
     .nullable = true,
     .meaning = "What the paths of addresses begin with if a proxy serves the server below a path, "
                "such as /models; requests may come with it or without it. null is the root."},
    {.name = "trusted_proxies",
     .type = CONFIG_TYPE_LIST,
     .offset = PLACE(trusted_proxies),
     .reloads = true,
     .meaning = "Addresses or networks (10.0.0.0/8) of proxies that are believed when they say for "
                "whom they forward a request, and by which scheme and host it came to them."},
    {.name = "cors.origins",
     .type = CONFIG_TYPE_LIST,
     .offset = PLACE(cors.origins),
     .reloads = true,
     .meaning = "Origins of web pages that may use the API in a browser (https://example.org); * "
                "stands for all and is refused together with tokens, with client certificates, and "
                "if writable."},
    {.name = "auth.tokens",
     .argument = "--tokens",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(auth.tokens),
     .nullable = true,
     .reloads = true,
     .meaning = "File that says who may do what; null lets everybody do everything."},
    {.name = "auth.jwks",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(auth.jwks),
     .nullable = true,
     .reloads = true,
     .meaning = "File of the public keys (JWKS) that sign the JSON Web Tokens which are accepted; "
                "null accepts none."},
    {.name = "auth.issuer",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(auth.issuer),
     .nullable = true,
     .reloads = true,
     .meaning = "Issuer (iss) that JSON Web Tokens must have."},
    {.name = "auth.audience",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(auth.audience),
     .nullable = true,
     .reloads = true,
     .meaning = "Audience (aud) that JSON Web Tokens must be made for."},
    {.name = "auth.skew_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(auth.skew_s),
     .reloads = true,
     .maximum = 3600,
     .number = 60,
     .meaning = "How far the clock of the issuer of JSON Web Tokens may be off."},
    {.name = "tls.cert",
     .argument = "--tls-cert",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(tls.cert),
     .nullable = true,
     .reloads = true,
     .meaning = "File of the certificate and its chain (PEM); null serves without TLS."},
    {.name = "tls.key",
     .argument = "--tls-key",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(tls.key),
     .nullable = true,
     .reloads = true,
     .meaning = "File of the private key of the certificate (PEM)."},
    {.name = "tls.client_ca",
     .argument = "--tls-client-ca",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(tls.client_ca),
     .nullable = true,
     .reloads = true,
     .meaning = "File of the authorities (PEM) whose certificates clients may show instead of a "
                "token; null asks for none."},
    {.name = "upload.max_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(upload.max_bytes),
     .reloads = true,
     .minimum = 1,
     .maximum = BYTES_MAX,
     .number = 1024 * GIB,
     .meaning = "Largest upload that is accepted."},
    {.name = "upload.reserve_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(upload.reserve_bytes),
     .reloads = true,
     .nullable = true,
     .minimum = CONFIG_RESERVE_AUTOMATIC,
     .maximum = BYTES_MAX,
     .number = CONFIG_RESERVE_AUTOMATIC,
     .meaning = "Disk space that uploads must leave free; null or -1 means 1 GiB or a twentieth of "
                "the disk, whichever is less."},
    {.name = "upload.open_per_client",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(upload.open_per_client),
     .reloads = true,
     .maximum = UPLOADS_MAX,
     .number = 256,
     .meaning = "Whole-file uploads that one client may have in progress; 0 sets no limit."},
    {.name = "upload.sessions_per_client",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(upload.sessions_per_client),
     .reloads = true,
     .maximum = UPLOADS_MAX,
     .number = 64,
     .meaning =
         "Unfinished multi-request uploads (streaming writer, resumable) that one client may "
         "have; 0 sets no limit."},
    {.name = "upload.expire_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(upload.expire_s),
     .reloads = true,
     .minimum = 1,
     .maximum = YEAR_S,
     .number = 86400,
     .meaning = "How long an unfinished multi-request upload may stay idle before it is removed."},
    {.name = "upload.body_timeout_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(upload.body_timeout_s),
     .reloads = true,
     .minimum = 1,
     .maximum = YEAR_S,
     .number = 86400,
     .meaning = "How long the body of one request may take in total."},
    {.name = "log.format",
     .argument = "--log-format",
     .type = CONFIG_TYPE_CHOICE,
     .offset = PLACE(log.format),
     .reloads = true,
     .number = CONFIG_LOG_TEXT,
     .choices = format_words,
     .meaning = "Format of log lines."},
    {.name = "log.level",
     .argument = "--log-level",
     .type = CONFIG_TYPE_CHOICE,
     .offset = PLACE(log.level),
     .reloads = true,
     .number = CONFIG_LOG_INFO,
     .choices = level_words,
     .meaning =
         "What is logged: errors; also warnings; also one line per request (info); or everything."},
    {.name = "limits.header_timeout_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(limits.header_timeout_s),
     .reloads = true,
     .minimum = 1,
     .maximum = DAY_S,
     .number = 30,
     .meaning = "How long a client may take to send the header of a request."},
    {.name = "limits.idle_timeout_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(limits.idle_timeout_s),
     .reloads = true,
     .minimum = 1,
     .maximum = DAY_S,
     .number = 60,
     .meaning = "How long a connection may stay idle."},
    {.name = "limits.body_min_bytes_per_s",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.body_min_bytes_per_s),
     .reloads = true,
     .maximum = GIB,
     .number = 512,
     .meaning = "Minimum average rate of a body; 0 sets none."},
    {.name = "limits.reader_min_bytes_per_s",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.reader_min_bytes_per_s),
     .reloads = true,
     .maximum = GIB,
     .number = 512,
     .meaning = "Minimum average rate at which a client must take an answer; 0 sets none."},
    {.name = "limits.rate_grace_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(limits.rate_grace_s),
     .reloads = true,
     .maximum = DAY_S,
     .number = 60,
     .meaning = "How long a transfer may run before its rate is checked."},
    {.name = "limits.connections",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(limits.connections),
     .reloads = true,
     .minimum = 1,
     .maximum = CONNECTIONS_MAX,
     .number = 10000,
     .meaning = "Maximum number of connections; less if there are not enough descriptors. Up to 64 "
                "more may send one request within 2 seconds: /healthz and /readyz are answered, "
                "all else gets a 503. All others are closed at once."},
    {.name = "limits.connections_per_address",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(limits.connections_per_address),
     .reloads = true,
     .maximum = CONNECTIONS_MAX,
     .meaning = "Maximum number of connections from one address; further ones are closed "
                "without an answer. 0 sets no limit."},
    {.name = "limits.send_buffer_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.send_buffer_bytes),
     .reloads = true,
     .maximum = GIB,
     .number = 262144,
     .meaning = "Send buffer of a socket (SO_SNDBUF); 0 leaves it to the kernel, which suits links "
                "of high bandwidth and latency. Large answers from files to other machines leave "
                "it to the kernel as well, or have 8 MiB if the client is quick."},
    {.name = "limits.decoded_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.decoded_bytes),
     .reloads = true,
     .maximum = BYTES_MAX,
     .number = 16 * GIB,
     .meaning = "Largest decoded size of a component that is decoded for clients."},
    {.name = "limits.decoded_cache_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.decoded_cache_bytes),
     .reloads = true,
     .maximum = BYTES_MAX,
     .number = GIB / 4,
     .meaning = "Memory and disk space for decoded components kept for later requests."},
    {.name = "limits.statistics_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.statistics_bytes),
     .reloads = true,
     .maximum = BYTES_MAX,
     .number = 64 * GIB,
     .meaning = "Most bytes of elements that statistics or a preview are made of, decoded but "
                "not widened."},
    {.name = "limits.digest_piece_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(limits.digest_piece_bytes),
     .reloads = true,
     .maximum = GIB,
     .number = 1048576,
     .meaning =
         "Size of the pieces of components whose SHA-256 is computed in the background, 65536 "
         "or more; 0 computes none."},
    {.name = "state.dir",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(state.dir),
     .nullable = true,
     .meaning = "Folder for state kept across restarts; null means .ztserve in the root, or for a "
                "bucket STATE_DIRECTORY, else a folder in ztserve in XDG_STATE_HOME, "
                "~/.local/state or /var/lib."},
    {.name = "metrics.public",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(metrics.public),
     .reloads = true,
     .meaning = "Whether /metrics needs no token."},
    {.name = "s3.endpoint",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(s3.endpoint),
     .nullable = true,
     .meaning = "Address of the object store, such as https://store.example.org:9000; null takes "
                "AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or that of AWS."},
    {.name = "s3.region",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(s3.region),
     .nullable = true,
     .meaning = "Region that requests are signed for; null takes AWS_REGION, AWS_DEFAULT_REGION, "
                "or us-east-1."},
    {.name = "s3.path_style",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(s3.path_style),
     .number = 1,
     .meaning = "Whether the bucket is named in the path; otherwise in the host's name."},
    {.name = "s3.poll_s",
     .type = CONFIG_TYPE_SECONDS,
     .offset = PLACE(s3.poll_s),
     .reloads = true,
     .minimum = 1,
     .maximum = DAY_S,
     .number = 30,
     .meaning = "How often the bucket is listed."},
    {.name = "s3.single_writer",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(s3.single_writer),
     .meaning = "Whether this is the only server that writes to the bucket: then it may publish on "
                "stores without conditional writes."},
    {.name = "s3.claims_bucket",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(s3.claims_bucket),
     .nullable = true,
     .meaning = "Bucket of the claims by which writers exclude each other; null means the models' "
                "own."},
    {.name = "s3.ca",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(s3.ca),
     .nullable = true,
     .meaning = "File of the authorities (PEM) that may certify the object store; null takes "
                "AWS_CA_BUNDLE, or the system's."},
    {.name = "s3.proxy",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(s3.proxy),
     .nullable = true,
     .meaning = "Proxy to the object store, as http://host:port; null uses none, whatever the "
                "environment says."},
    {.name = "s3.connections",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(s3.connections),
     .minimum = 1,
     .maximum = 256,
     .number = 16,
     .meaning = "Requests to the object store at a time."},
    {.name = "s3.part_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(s3.part_bytes),
     .minimum = 65536,
     .maximum = GIB,
     .number = 16777216,
     .meaning = "Size of the parts in which a large model is uploaded, at least 65536 (AWS wants 5 "
                "MiB); what is not larger is sent by one request. Parts grow with models of more "
                "than 9,000 of them."},
    {.name = "s3.ready_when_away",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(s3.ready_when_away),
     .reloads = true,
     .number = 1,
     .meaning = "Whether /readyz answers 200 while the object store is away, since what is cached "
                "is still served; never before it was reached for the first time."},
    {.name = "hub.views",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(hub.views),
     .number = 1,
     .meaning = "Whether clients of the Hub find models in other formats as safetensors files too "
                "(model.zt as model.safetensors)."},
    {.name = "hub.shard_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(hub.shard_bytes),
     .minimum = 1,
     .maximum = BYTES_MAX,
     .number = 5000000000,
     .meaning = "A model with more bytes of tensors is shown to clients of the Hub as several "
                "safetensors files of about this size, with an index."},
    {.name = "hub.regular_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(hub.regular_bytes),
     .reloads = true,
     .maximum = BYTES_MAX,
     .number = 67108864,
     .meaning = "Largest file that the Hub's clients are told to send within a commit; larger ones "
                "go by Git LFS."},
    {.name = "hub.staged_per_client",
     .type = CONFIG_TYPE_COUNT,
     .offset = PLACE(hub.staged_per_client),
     .reloads = true,
     .maximum = UPLOADS_MAX,
     .number = 1000,
     .meaning = "Files that one client of the Hub may have sent before the commit that names them; "
                "0 sets no limit."},
    {.name = "hub.part_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(hub.part_bytes),
     .reloads = true,
     .maximum = BYTES_MAX,
     .number = 268435456,
     .meaning = "Files that are larger go in parts of about this size, sent side by side, from "
                "clients of the Hub that can do that; 0 takes every file as a whole."},
    {.name = "hub.xet",
     .type = CONFIG_TYPE_BOOL,
     .offset = PLACE(hub.xet),
     .number = 1,
     .meaning = "Whether clients of the Hub may upload by xet, as they do unless "
                "HF_HUB_DISABLE_XET=1 is set for them."},
    {.name = "cache.dir",
     .argument = "--cache-dir",
     .type = CONFIG_TYPE_TEXT,
     .offset = PLACE(cache.dir),
     .nullable = true,
     .meaning = "Folder of the block cache of a bucket, on a local disk; null means cache in the "
                "state folder."},
    {.name = "cache.max_bytes",
     .type = CONFIG_TYPE_BYTES,
     .offset = PLACE(cache.max_bytes),
     .reloads = true,
     .maximum = BYTES_MAX,
     .meaning = "Disk space of the block cache; 0 takes what leaves a twentieth of the disk, at "
                "least 2 GiB, free."},
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
    size_t best = length / 3 + 1; /* a typing error changes at most a third of the name */
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
