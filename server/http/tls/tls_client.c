/* A session of GnuTLS with the defaults of the system. */
#include "http/tls/tls_client.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tls_client {
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

static bool is_address(const char *host)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Whose certificate is accepted. */
static int expect(struct tls_client *client, const char *host, const char *ca_file)
{
    int status = GNUTLS_E_SUCCESS;

    if (host == NULL)
        return GNUTLS_E_SUCCESS;
    status = ca_file != NULL ? gnutls_certificate_set_x509_trust_file(client->credentials, ca_file,
                                                                      GNUTLS_X509_FMT_PEM)
                             : gnutls_certificate_set_x509_system_trust(client->credentials);
    if (status < 0)
        return status;
    gnutls_session_set_verify_cert(client->session, host, 0);
    /* RFC 6066 section 3: not for addresses. */
    return is_address(host)
               ? GNUTLS_E_SUCCESS
               : gnutls_server_name_set(client->session, GNUTLS_NAME_DNS, host, strlen(host));
}

static int shake_hands(struct tls_client *client, int descriptor, const char *host,
                       const char *ca_file)
{
    int status = gnutls_set_default_priority(client->session);

    if (status >= 0)
        status =
            gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->credentials);
    if (status >= 0)
        status = expect(client, host, ca_file);
    if (status < 0)
        return status;
    gnutls_transport_set_int(client->session, descriptor);
    do
        status = gnutls_handshake(client->session);
    while (status < 0 && gnutls_error_is_fatal(status) == 0);
    return status;
}

struct tls_client *tls_client_open(int descriptor, const char *host, const char *ca_file,
                                   char *error, size_t error_size)
{
    struct tls_client *client = calloc(1, sizeof(*client));
    int status = GNUTLS_E_MEMORY_ERROR;

    if (client != NULL)
        status = gnutls_certificate_allocate_credentials(&client->credentials);
    if (status >= 0)
        status = gnutls_init(&client->session, GNUTLS_CLIENT);
    if (status >= 0)
        status = shake_hands(client, descriptor, host, ca_file);
    if (status >= 0)
        return client;
    snprintf(error, error_size, "TLS: %s", gnutls_strerror(status));
    tls_client_close(client);
    return NULL;
}

bool tls_client_send(struct tls_client *client, const void *bytes, size_t length)
{
    ssize_t sent;

    do
        sent = gnutls_record_send(client->session, bytes, length);
    while (sent < 0 && gnutls_error_is_fatal((int)sent) == 0);
    /* A record holds more than a request of this program. */
    return sent == (ssize_t)length;
}

ssize_t tls_client_receive(struct tls_client *client, void *bytes, size_t size)
{
    ssize_t received;

    do
        received = gnutls_record_recv(client->session, bytes, size);
    while (received < 0 && gnutls_error_is_fatal((int)received) == 0);
    return received < 0 ? -1 : received;
}

void tls_client_close(struct tls_client *client)
{
    if (client == NULL)
        return;
    if (client->session != NULL)
        gnutls_deinit(client->session);
    if (client->credentials != NULL)
        gnutls_certificate_free_credentials(client->credentials);
    free(client);
}
