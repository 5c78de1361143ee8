/* Listening sockets. */
#include "tests.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/wire/listener.h"

static char address[LISTENER_ADDRESS_SIZE];
static char error[600];

static int open_sockets(const char *listen_on, unsigned count, int *sockets, char *out_address)
{
    struct listener listener = {.count = count, .sockets = sockets};
    const int status = listener_open(&listener, listen_on, error, sizeof(error));

    if (status == 0)
        strcpy(out_address, listener.address);
    return status;
}

static unsigned port_of(int descriptor)
{
    struct sockaddr_in bound;
    socklen_t length = sizeof(bound);

    assert_int_equal(getsockname(descriptor, (struct sockaddr *)&bound, &length), 0);
    return ntohs(bound.sin_port);
}

TEST(port_zero_is_the_same_for_all)
{
    int sockets[3];

    assert_int_equal(open_sockets("127.0.0.1:0", 3, sockets, address), 0);
    assert_true(port_of(sockets[0]) > 0);
    assert_int_equal(port_of(sockets[0]), port_of(sockets[1]));
    assert_int_equal(port_of(sockets[0]), port_of(sockets[2]));
    assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
    for (unsigned i = 0; i < 3; i++)
        close(sockets[i]);
}

TEST(a_port_in_use_is_an_error)
{
    int first[2];
    int second[2];
    char taken[LISTENER_ADDRESS_SIZE];

    assert_int_equal(open_sockets("127.0.0.1:0", 2, first, taken), 0);
    assert_int_equal(open_sockets(taken, 2, second, address), -1);
    assert_non_null(strstr(error, taken));
    assert_non_null(strstr(error, "in use"));
    close(first[0]);
    close(first[1]);
}

TEST(an_address_of_another_machine_is_an_error)
{
    int sockets[1];

    assert_int_equal(open_sockets("192.0.2.1:8080", 1, sockets, address), -1);
    assert_non_null(strstr(error, "192.0.2.1:8080"));
}

TEST(a_malformed_address_is_an_error)
{
    int sockets[1];

    assert_int_equal(open_sockets("127.0.0.1", 1, sockets, address), -1);
    assert_true(strlen(error) > 0);
}
