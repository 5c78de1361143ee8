/* Loading the files of TLS, and the version in force behind a lock, which only new connections and
 * reloads take. */
#include "http/tls/tls.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "http/tls/tls_version.h"
#include "input/date.h"

/* A bundle of all public authorities has about 250 KiB. */
#define FILE_MOST ((size_t)4 << 20)
/* The most certificates between the server's and a root. */
#define CHAIN_MOST 32u

struct tls {
    pthread_mutex_t lock;
    struct tls_version *current;
};

/* Where an error is reported, and of which key and file. */
struct report {
    char *error;
    size_t size;
    const char *key;
    const char *path;
    bool is_open; /* everybody may read or change it */
};

static bool fail(const struct report *report, const char *why)
{
    snprintf(report->error, report->size, "%s: %s: %s", report->key, report->path, why);
    return false;
}

/* --- files --- */

static void free_bytes(gnutls_datum_t *bytes)
{
    /* It may be the key. */
    if (bytes->data != NULL)
        explicit_bzero(bytes->data, bytes->size);
    free(bytes->data);
    *bytes = (gnutls_datum_t){NULL, 0};
}

static bool read_all(int descriptor, gnutls_datum_t *bytes, size_t size)
{
    while (bytes->size < size) {
        const ssize_t got = read(descriptor, bytes->data + bytes->size, size - bytes->size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        bytes->size += (unsigned)got;
    }
    return true;
}

static bool read_opened(int descriptor, struct report *report, gnutls_datum_t *out_bytes)
{
    struct stat status;

    if (fstat(descriptor, &status) != 0)
        return fail(report, strerrordesc_np(errno));
    if (!S_ISREG(status.st_mode))
        return fail(report, "not a file");
    if (status.st_size > (off_t)FILE_MOST)
        return fail(report, "too large for a file of certificates");
    report->is_open = (status.st_mode & S_IRWXO) != 0;
    out_bytes->data = malloc((size_t)status.st_size + 1);
    if (out_bytes->data == NULL)
        return fail(report, "out of memory");
    if (read_all(descriptor, out_bytes, (size_t)status.st_size))
        return true;
    fail(report, strerrordesc_np(errno));
    free_bytes(out_bytes);
    return false;
}

static bool read_file(struct report *report, gnutls_datum_t *out_bytes)
{
    /* Not to wait if it is a FIFO. */
    const int descriptor = open(report->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool read_it;

    *out_bytes = (gnutls_datum_t){NULL, 0};
    if (descriptor < 0)
        return fail(report, strerrordesc_np(errno));
    read_it = read_opened(descriptor, report, out_bytes);
    close(descriptor);
    return read_it;
}

/* --- the certificate and its key --- */

struct chain {
    gnutls_x509_crt_t certificates[CHAIN_MOST];
    unsigned count;
};

static void free_chain(struct chain *chain)
{
    while (chain->count > 0)
        gnutls_x509_crt_deinit(chain->certificates[--chain->count]);
}

static bool load_chain(struct report *report, struct chain *chain)
{
    gnutls_datum_t bytes;
    int status;

    chain->count = CHAIN_MOST;
    if (!read_file(report, &bytes)) {
        chain->count = 0;
        return false;
    }
    status =
        gnutls_x509_crt_list_import(chain->certificates, &chain->count, &bytes, GNUTLS_X509_FMT_PEM,
                                    GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    free_bytes(&bytes);
    if (status > 0) {
        chain->count = (unsigned)status;
        return true;
    }
    chain->count = 0;
    if (status == GNUTLS_E_SHORT_MEMORY_BUFFER)
        return fail(report, "too many certificates");
    return fail(report, status == GNUTLS_E_NO_CERTIFICATE_FOUND || status == 0
                            ? "there is no certificate (PEM) in it"
                            : gnutls_strerror(status));
}

static bool load_key(struct report *report, gnutls_x509_privkey_t key)
{
    gnutls_datum_t bytes;
    int status;

    if (!read_file(report, &bytes))
        return false;
    status = gnutls_x509_privkey_import2(key, &bytes, GNUTLS_X509_FMT_PEM, NULL, 0);
    free_bytes(&bytes);
    if (status == GNUTLS_E_SUCCESS)
        return true;
    if (status == GNUTLS_E_DECRYPTION_FAILED)
        return fail(report, "the private key is encrypted; give one without a password");
    return fail(report, status == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR ||
                                status == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE
                            ? "there is no private key (PEM) in it"
                            : gnutls_strerror(status));
}

static bool set_pair(struct tls_version *version, const struct config *config, struct chain *chain,
                     gnutls_x509_privkey_t key, struct report *report)
{
    int status;

    report->key = "tls.cert";
    report->path = config->tls.cert;
    if (!load_chain(report, chain))
        return false;
    report->key = "tls.key";
    report->path = config->tls.key;
    if (!load_key(report, key))
        return false;
    version->begins_s = (int64_t)gnutls_x509_crt_get_activation_time(chain->certificates[0]);
    version->expires_s = (int64_t)gnutls_x509_crt_get_expiration_time(chain->certificates[0]);
    version->key_is_open = report->is_open;
    status = gnutls_certificate_set_x509_key(version->credentials, chain->certificates,
                                             (int)chain->count, key);
    if (status >= 0)
        return true;
    if (status != GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return fail(report, gnutls_strerror(status));
    snprintf(report->error, report->size,
             "tls.key: %s: not the key of the (first) certificate in tls.cert, %s", config->tls.key,
             config->tls.cert);
    return false;
}

static bool load_pair(struct tls_version *version, const struct config *config,
                      struct report *report)
{
    struct chain chain = {.count = 0};
    gnutls_x509_privkey_t key;
    bool loaded;

    if (gnutls_x509_privkey_init(&key) != GNUTLS_E_SUCCESS)
        return fail(report, "out of memory");
    loaded = set_pair(version, config, &chain, key, report);
    /* The credentials have copies. */
    gnutls_x509_privkey_deinit(key);
    free_chain(&chain);
    return loaded;
}

/* --- what clients may show --- */

static bool load_authorities(struct tls_version *version, struct report *report)
{
    gnutls_datum_t bytes;
    int count;

    if (!read_file(report, &bytes))
        return false;
    count =
        gnutls_certificate_set_x509_trust_mem(version->credentials, &bytes, GNUTLS_X509_FMT_PEM);
    free_bytes(&bytes);
    if (count > 0)
        return true;
    return fail(report, count == 0 || count == GNUTLS_E_NO_CERTIFICATE_FOUND
                            ? "there is no certificate (PEM) in it"
                            : gnutls_strerror(count));
}

/* --- versions --- */

static bool load(struct tls_version *version, const struct config *config, char *error,
                 size_t error_size)
{
    struct report report = {error, error_size, "tls.cert", config->tls.cert, false};
    gnutls_datum_t ticket_key;

    if (gnutls_certificate_allocate_credentials(&version->credentials) != GNUTLS_E_SUCCESS ||
        gnutls_session_ticket_key_generate(&ticket_key) != GNUTLS_E_SUCCESS)
        return fail(&report, "out of memory or random numbers");
    version->ticket_key = ticket_key.data;
    version->ticket_key_size = ticket_key.size;
    if (!load_pair(version, config, &report))
        return false;
    version->asks_clients = config->tls.client_ca[0] != '\0';
    report.key = "tls.client_ca";
    report.path = config->tls.client_ca;
    return !version->asks_clients || load_authorities(version, &report);
}

/* It works, but clients will refuse the certificate, or others can use the key. */
static void warn(const struct tls_version *version, const struct config *config)
{
    const time_t now = time(NULL);
    char date[HTTP_DATE_SIZE];

    if (version->expires_s < now) {
        http_date_format((time_t)version->expires_s, date);
        log_write(LOG_LEVEL_WARN, "tls.cert: %s: the certificate expired on %s", config->tls.cert,
                  date);
    } else if (version->begins_s > now) {
        http_date_format((time_t)version->begins_s, date);
        log_write(LOG_LEVEL_WARN, "tls.cert: %s: the certificate is not valid before %s",
                  config->tls.cert, date);
    }
    if (version->key_is_open)
        log_write(LOG_LEVEL_WARN, "tls.key: %s: every user of this machine can read or change it",
                  config->tls.key);
}

struct tls_version *tls_load(const struct config *config, char *error, size_t error_size)
{
    struct tls_version *version = calloc(1, sizeof(*version));

    assert(config->tls.cert[0] != '\0' && config->tls.key[0] != '\0');
    if (version == NULL) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    atomic_init(&version->holders, 1);
    if (!load(version, config, error, error_size)) {
        tls_release(version);
        return NULL;
    }
    warn(version, config);
    return version;
}

struct tls_version *tls_hold(struct tls_version *version)
{
    const unsigned before = atomic_fetch_add_explicit(&version->holders, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
    return version;
}

void tls_release(struct tls_version *version)
{
    if (version == NULL)
        return;
    if (atomic_fetch_sub_explicit(&version->holders, 1, memory_order_acq_rel) > 1)
        return;
    if (version->credentials != NULL)
        gnutls_certificate_free_credentials(version->credentials);
    if (version->ticket_key != NULL)
        explicit_bzero(version->ticket_key, version->ticket_key_size);
    gnutls_free(version->ticket_key);
    free(version);
}

/* --- checking --- */

static bool check_chain(struct report *report)
{
    struct chain chain = {.count = 0};
    const bool loaded = load_chain(report, &chain);

    free_chain(&chain);
    return loaded;
}

static bool check_key(struct report *report)
{
    gnutls_x509_privkey_t key;
    bool loaded;

    if (gnutls_x509_privkey_init(&key) != GNUTLS_E_SUCCESS)
        return fail(report, "out of memory");
    loaded = load_key(report, key);
    gnutls_x509_privkey_deinit(key);
    return loaded;
}

static bool check_authorities(struct report *report)
{
    struct tls_version version = {.credentials = NULL};
    bool loaded;

    if (gnutls_certificate_allocate_credentials(&version.credentials) != GNUTLS_E_SUCCESS)
        return fail(report, "out of memory");
    loaded = load_authorities(&version, report);
    gnutls_certificate_free_credentials(version.credentials);
    return loaded;
}

bool tls_check(const struct config *config, char *error, size_t error_size)
{
    struct report cert = {error, error_size, "tls.cert", config->tls.cert, false};
    struct report key = {error, error_size, "tls.key", config->tls.key, false};
    struct report authorities = {error, error_size, "tls.client_ca", config->tls.client_ca, false};
    struct tls_version *version;

    if (config->tls.cert[0] != '\0' && config->tls.key[0] != '\0') {
        version = tls_load(config, error, error_size);
        tls_release(version);
        return version != NULL;
    }
    return (config->tls.cert[0] == '\0' || check_chain(&cert)) &&
           (config->tls.key[0] == '\0' || check_key(&key)) &&
           (config->tls.client_ca[0] == '\0' || check_authorities(&authorities));
}

/* --- the version in force --- */

struct tls *tls_new(struct tls_version *version)
{
    struct tls *tls = calloc(1, sizeof(*tls));

    if (tls == NULL) {
        tls_release(version);
        return NULL;
    }
    pthread_mutex_init(&tls->lock, NULL);
    tls->current = version;
    return tls;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    tls_release(tls->current);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

void tls_replace(struct tls *tls, struct tls_version *version)
{
    struct tls_version *old;

    pthread_mutex_lock(&tls->lock);
    old = tls->current;
    tls->current = version;
    pthread_mutex_unlock(&tls->lock);
    tls_release(old);
}

struct tls_version *tls_current(struct tls *tls)
{
    struct tls_version *version;

    pthread_mutex_lock(&tls->lock);
    version = tls_hold(tls->current);
    pthread_mutex_unlock(&tls->lock);
    return version;
}

int64_t tls_expires_s(struct tls *tls)
{
    int64_t expires_s;

    pthread_mutex_lock(&tls->lock);
    expires_s = tls->current->expires_s;
    pthread_mutex_unlock(&tls->lock);
    return expires_s;
}
