/* Sessions that libmicrohttpd makes and drives. Each gets the credentials of the version in force
 * when its connection was opened, in place of the library's own, which cannot be replaced while the
 * library runs. */
#include "http/tls/tls_session.h"

#include <assert.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/tap/tap.h"
#include "http/tls/tls.h"
#include "http/tls/tls_version.h"
#include "zt/utf8.h"

/* More names of a certificate, and longer ones, are ignored. */
#define NAMES_MOST 32u
#define NAME_SIZE  1024u
/* Of a subject, and of one relative name in it. Subjects have fewer than ten. */
#define SUBJECT_PARTS_MOST 64
/* Types of text (X.680 section 8.4). */
#define TAG_UTF8      12
#define TAG_PRINTABLE 19
#define TAG_TELETEX   20
#define TAG_IA5       22
#define TAG_BMP       30
/* RFC 8446 section 5.1. */
#define RECORD_BYTES 16384u
/* How much is received at least. GnuTLS asks for the header of a record and then for the rest; most
 * requests fit in here, and arrive with one call. */
#define AHEAD_BYTES 1024u
/* The time between two warnings of the process that a client's certificate was refused. */
#define WARNING_MS 10000

struct tls_session {
    gnutls_session_t library; /* NULL once the library has freed it */
    struct tls_version *version;
    bool was_asked;
    char **names; /* NULL until they are asked for, and without a valid certificate */
    int descriptor;
    bool is_drained;     /* the last call received all that the socket had */
    bool may_be_corked;  /* by the library */
    bool record_follows; /* right after the record that is being sent */
    unsigned ahead_begin;
    unsigned ahead_end;
    unsigned char ahead[AHEAD_BYTES]; /* received and not yet given to GnuTLS */
};

/* --- the client's certificate --- */

/* The problems of the client's certificate, as GnuTLS's flags; 0 if it is good. */
static unsigned verify(gnutls_session_t library)
{
    static char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st wanted = {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)purpose, 0};
    unsigned problems = 0;

    if (gnutls_certificate_verify_peers(library, &wanted, 1, &problems) != GNUTLS_E_SUCCESS)
        problems |= GNUTLS_CERT_INVALID;
    return problems;
}

static gnutls_alert_description_t alert_of(unsigned problems)
{
    if ((problems & GNUTLS_CERT_SIGNER_NOT_FOUND) != 0)
        return GNUTLS_A_UNKNOWN_CA;
    if ((problems & GNUTLS_CERT_EXPIRED) != 0)
        return GNUTLS_A_CERTIFICATE_EXPIRED;
    return GNUTLS_A_BAD_CERTIFICATE;
}

/* Only once in a while, since clients may keep trying. */
static void warn_of_refusal(unsigned problems)
{
    static _Atomic int64_t next_ms;
    const int64_t now_ms = clock_coarse_ms();
    int64_t due_ms = atomic_load_explicit(&next_ms, memory_order_relaxed);
    gnutls_datum_t text = {NULL, 0};

    if (now_ms < due_ms ||
        !atomic_compare_exchange_strong_explicit(&next_ms, &due_ms, now_ms + WARNING_MS,
                                                 memory_order_relaxed, memory_order_relaxed) ||
        gnutls_certificate_verification_status_print(problems, GNUTLS_CRT_X509, &text, 0) !=
            GNUTLS_E_SUCCESS)
        return;
    log_write(LOG_LEVEL_WARN, "a client's certificate was refused: %s", (const char *)text.data);
    gnutls_free(text.data);
}

/* Called by GnuTLS in the handshake of a session that asked for a certificate. A client that shows
 * none is let in and counts as nobody; one whose certificate is not good must not believe that it
 * counts as somebody. */
static int on_certificate(gnutls_session_t library)
{
    unsigned count = 0;
    unsigned problems;

    if (gnutls_certificate_get_peers(library, &count) == NULL || count == 0)
        return GNUTLS_E_SUCCESS;
    problems = verify(library);
    if (problems == 0)
        return GNUTLS_E_SUCCESS;
    warn_of_refusal(problems);
    /* libmicrohttpd just closes, which tells the client nothing. */
    gnutls_alert_send(library, GNUTLS_AL_FATAL, alert_of(problems));
    return GNUTLS_E_CERTIFICATE_ERROR;
}

/* --- names --- */

static bool name_is_plain(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F)
            return false;
    return length > 0 && length < NAME_SIZE && zt_utf8_valid(name, length);
}

/* A name with a NUL or another control character could pass for a different one. */
static void add_name(char **names, size_t *count, const char *name, size_t length)
{
    if (*count == NAMES_MOST || !name_is_plain(name, length))
        return;
    names[*count] = strndup(name, length);
    if (names[*count] != NULL)
        (*count)++;
}

/* GnuTLS counts the NUL behind the digits of an OID in some versions. */
static bool is_common_name(const gnutls_x509_ava_st *part)
{
    static const char common_name[] = GNUTLS_OID_X520_COMMON_NAME;
    const size_t length = strnlen((const char *)part->oid.data, part->oid.size);

    return length == strlen(common_name) && memcmp(part->oid.data, common_name, length) == 0;
}

static bool is_ascii(const gnutls_datum_t *text)
{
    for (unsigned i = 0; i < text->size; i++)
        if (text->data[i] > 0x7F)
            return false;
    return true;
}

/* From UTF-16 (BMPString) to UTF-8; returns the length. Surrogates become what is not UTF-8. */
static size_t from_utf16(const unsigned char *bytes, size_t length, char out_name[NAME_SIZE])
{
    size_t at = 0;

    for (size_t i = 0; i + 1 < length && at + 3 < NAME_SIZE; i += 2) {
        const unsigned unit = (unsigned)bytes[i] << 8 | bytes[i + 1];

        if (unit < 0x80) {
            out_name[at++] = (char)unit;
            continue;
        }
        if (unit >= 0x800) {
            out_name[at++] = (char)(0xE0 | unit >> 12);
            out_name[at++] = (char)(0x80 | (unit >> 6 & 0x3F));
        } else {
            out_name[at++] = (char)(0xC0 | unit >> 6);
        }
        out_name[at++] = (char)(0x80 | (unit & 0x3F));
    }
    return at;
}

/* The value itself: texts that the library makes of names are escaped (RFC 4514). */
static void add_common_name_value(const gnutls_x509_ava_st *part, char **names, size_t *count)
{
    const size_t length = part->value.size;
    char name[NAME_SIZE];

    switch (part->value_tag) {
    case TAG_UTF8:
        add_name(names, count, (const char *)part->value.data, length);
        break;
    case TAG_PRINTABLE:
    case TAG_TELETEX: /* beyond ASCII it is in one character set or another */
    case TAG_IA5:
        if (is_ascii(&part->value))
            add_name(names, count, (const char *)part->value.data, length);
        break;
    case TAG_BMP:
        if (length % 2 == 0 && length < NAME_SIZE / 2)
            add_name(names, count, name, from_utf16(part->value.data, length, name));
        break;
    default:
        break;
    }
}

/* The first one: a subject has more than one only by mistake. */
static void add_common_name(gnutls_x509_crt_t certificate, char **names, size_t *count)
{
    gnutls_x509_dn_t subject;
    gnutls_x509_ava_st part;

    if (gnutls_x509_crt_get_subject(certificate, &subject) != GNUTLS_E_SUCCESS)
        return;
    for (int i = 0; i < SUBJECT_PARTS_MOST; i++) {
        for (int j = 0; j < SUBJECT_PARTS_MOST; j++) {
            if (gnutls_x509_dn_get_rdn_ava(subject, i, j, &part) != GNUTLS_E_SUCCESS) {
                if (j == 0)
                    return;
                break;
            }
            if (is_common_name(&part)) {
                add_common_name_value(&part, names, count);
                return;
            }
        }
    }
}

static void add_alternative_names(gnutls_x509_crt_t certificate, char **names, size_t *count)
{
    for (unsigned i = 0; i < NAMES_MOST; i++) {
        char name[NAME_SIZE];
        size_t length = sizeof(name);
        const int kind = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &length, NULL);

        if (kind == GNUTLS_SAN_DNSNAME || kind == GNUTLS_SAN_URI || kind == GNUTLS_SAN_RFC822NAME)
            add_name(names, count, name, length);
        else if (kind == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return;
    }
}

static char **read_names(gnutls_session_t library)
{
    unsigned count = 0;
    const gnutls_datum_t *certificates = gnutls_certificate_get_peers(library, &count);
    gnutls_x509_crt_t certificate;
    size_t found = 0;
    char **names;

    /* Checked anew, since it may have expired between two sessions. */
    if (certificates == NULL || count == 0 || verify(library) != 0 ||
        gnutls_x509_crt_init(&certificate) != GNUTLS_E_SUCCESS)
        return NULL;
    names = calloc(NAMES_MOST + 1, sizeof(char *));
    if (names != NULL && gnutls_x509_crt_import(certificate, &certificates[0],
                                                GNUTLS_X509_FMT_DER) == GNUTLS_E_SUCCESS) {
        add_common_name(certificate, names, &found);
        add_alternative_names(certificate, names, &found);
    }
    gnutls_x509_crt_deinit(certificate);
    return names;
}

const char *const *tls_session_client_names(struct tls_session *session)
{
    if (!session->was_asked && session->library != NULL && session->version->asks_clients) {
        session->names = read_names(session->library);
        session->was_asked = true;
    }
    return (const char *const *)session->names;
}

bool tls_session_asks_client(const struct tls_session *session)
{
    return session != NULL && session->version->asks_clients;
}

/* --- the bytes on the wire --- */

/* Receives more than GnuTLS asks for. Calls recv and not recvfrom: the tap shows these bytes. */
static ssize_t pull(gnutls_transport_ptr_t context, void *bytes, size_t size)
{
    struct tls_session *session = context;
    const bool goes_past = size >= AHEAD_BYTES;
    const size_t room = goes_past ? size : AHEAD_BYTES;

    assert(session->ahead_begin <= session->ahead_end && session->ahead_end <= AHEAD_BYTES);
    if (session->ahead_begin == session->ahead_end) {
        const ssize_t length =
            recv(session->descriptor, goes_past ? bytes : session->ahead, room, 0);

        session->is_drained = length < (ssize_t)room;
        if (length <= 0 || goes_past)
            return length;
        session->ahead_begin = 0;
        session->ahead_end = (unsigned)length;
    }
    if (size > session->ahead_end - session->ahead_begin)
        size = session->ahead_end - session->ahead_begin;
    memcpy(bytes, session->ahead + session->ahead_begin, size);
    session->ahead_begin += (unsigned)size;
    return (ssize_t)size;
}

static int pull_waits(gnutls_transport_ptr_t context, unsigned timeout_ms)
{
    const struct tls_session *session = context;

    if (session->ahead_begin < session->ahead_end)
        return 1;
    return gnutls_system_recv_timeout((gnutls_transport_ptr_t)(intptr_t)session->descriptor,
                                      timeout_ms);
}

/* Sends a record. If another one follows, the kernel waits for it before it fills a packet. */
static ssize_t push(gnutls_transport_ptr_t context, const giovec_t *parts, int count)
{
    const struct tls_session *session = context;
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                                   .msg_iovlen = (size_t)count};

    return sendmsg(session->descriptor, &message,
                   MSG_NOSIGNAL | (session->record_follows ? MSG_MORE : 0));
}

/* Sends as much as the socket takes. Returns as gnutls_record_send. After GNUTLS_E_AGAIN, or if
 * less than size was sent, the same bytes must be given again, from the first that was not sent. */
static ssize_t send_records(struct tls_session *session, const unsigned char *bytes, size_t size)
{
    ssize_t length = 0;
    size_t sent = 0;

    assert(session->library != NULL && size > 0);
    while (sent < size) {
        session->record_follows = size - sent > RECORD_BYTES;
        length = gnutls_record_send2(session->library, bytes + sent, size - sent, 0, 0);
        if (length <= 0)
            break;
        sent += (size_t)length;
    }
    session->record_follows = false;
    return sent > 0 ? (ssize_t)sent : length;
}

/* --- begin and end --- */

static bool prepare(gnutls_session_t library, const struct tls_version *version)
{
    const gnutls_datum_t ticket_key = {version->ticket_key, version->ticket_key_size};

    if (gnutls_session_ticket_enable_server(library, &ticket_key) != GNUTLS_E_SUCCESS)
        return false;
    if (version->asks_clients) {
        gnutls_certificate_server_set_request(library, GNUTLS_CERT_REQUEST);
        gnutls_session_set_verify_function(library, on_certificate);
    }
    /* Last, so that after a failure the session does not refer to the version. */
    return gnutls_credentials_set(library, GNUTLS_CRD_CERTIFICATE, version->credentials) ==
           GNUTLS_E_SUCCESS;
}

/* The library sets its own descriptor before, and uses neither pointer. */
static void take_transport(struct tls_session *session)
{
    gnutls_db_set_ptr(session->library, session);
    gnutls_transport_set_ptr(session->library, session);
    gnutls_transport_set_pull_function(session->library, pull);
    gnutls_transport_set_pull_timeout_function(session->library, pull_waits);
    gnutls_transport_set_vec_push_function(session->library, push);
}

struct tls_session *tls_session_begin(struct tls *tls, struct gnutls_session_int *library)
{
    struct tls_session *session = library != NULL ? calloc(1, sizeof(*session)) : NULL;

    if (session == NULL)
        return NULL;
    session->library = library;
    session->version = tls_current(tls);
    session->descriptor = gnutls_transport_get_int(library);
    if (prepare(library, session->version)) {
        take_transport(session);
        return session;
    }
    tls_session_detach(session);
    tls_session_end(session);
    return NULL;
}

void tls_session_detach(struct tls_session *session)
{
    if (session != NULL)
        session->library = NULL;
}

void tls_session_end(struct tls_session *session)
{
    if (session == NULL)
        return;
    assert(session->library == NULL);
    for (char **name = session->names; name != NULL && *name != NULL; name++)
        free(*name);
    free(session->names);
    tls_release(session->version);
    free(session);
}

/* --- beside the library --- */

/* Returns the session that this program made for the library's; NULL: it is another library's. */
static struct tls_session *session_of(gnutls_session_t library)
{
    return gnutls_db_get_ptr(library);
}

/* Replaces GnuTLS's function (tap.h), which does the same without the record's number. After
 * GNUTLS_E_AGAIN the library waits until the socket becomes readable; after GNUTLS_E_INTERRUPTED it
 * tries again. */
__attribute__((visibility("default"))) ssize_t gnutls_record_recv(gnutls_session_t library,
                                                                  void *data, size_t data_size)
{
    unsigned char number[8];
    const ssize_t length = gnutls_record_recv_seq(library, data, data_size, number);
    const struct tls_session *session = session_of(library);

    if (length <= 0 || session == NULL)
        return length;
    switch (tap_show(session->descriptor, false, data, (size_t)length)) {
    case TAP_PASS:
        return length;
    case TAP_TAKEN:
        return session->is_drained && !tls_session_has_unread(session) ? GNUTLS_E_AGAIN
                                                                       : GNUTLS_E_INTERRUPTED;
    case TAP_END:
        break;
    }
    return 0;
}

/* Replaces GnuTLS's function, which sends one record; the library would send the next one in
 * another turn of the loop. */
__attribute__((visibility("default"))) ssize_t gnutls_record_send(gnutls_session_t library,
                                                                  const void *data,
                                                                  size_t data_size)
{
    struct tls_session *session = session_of(library);

    if (session == NULL || data_size == 0)
        return gnutls_record_send2(library, data, data_size, 0, 0);
    session->may_be_corked = true;
    return send_records(session, data, data_size);
}

bool tls_session_has_unread(const struct tls_session *session)
{
    return session->ahead_begin < session->ahead_end ||
           (session->library != NULL && gnutls_record_check_pending(session->library) > 0);
}

/* The library corks a socket for its first answer, and afterwards only flushes it. */
static void uncork(struct tls_session *session)
{
    const int off = 0;

    if (session->may_be_corked)
        setsockopt(session->descriptor, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
    session->may_be_corked = false;
}

ssize_t tls_session_send(struct tls_session *session, const void *bytes, size_t length)
{
    ssize_t sent;

    if (session->library == NULL)
        return -1;
    uncork(session);
    sent = send_records(session, bytes, length);
    if (sent == GNUTLS_E_AGAIN || sent == GNUTLS_E_INTERRUPTED)
        return 0;
    return sent > 0 ? sent : -1;
}

void tls_session_send_last(struct tls_session *session, const void *bytes, size_t length)
{
    if (session->library == NULL)
        return;
    (void)send_records(session, bytes, length);
    (void)gnutls_bye(session->library, GNUTLS_SHUT_WR);
}

uint64_t tls_session_content_of(const struct tls_session *session, uint64_t wire_bytes)
{
    uint64_t overhead;
    uint64_t rest;

    if (session->library == NULL)
        return 0;
    overhead = gnutls_record_overhead_size(session->library);
    rest = wire_bytes % (RECORD_BYTES + overhead);
    return wire_bytes / (RECORD_BYTES + overhead) * RECORD_BYTES +
           (rest > overhead ? rest - overhead : 0);
}
