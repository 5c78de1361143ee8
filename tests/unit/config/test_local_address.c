/* Which peers count as being on the same machine. */
#include "tests.h"

#include <string.h>

#include "config/network.h"

static bool is_local(const char *peer, const char *own)
{
    struct address peer_address;
    struct address own_address;

    assert_true(address_parse(peer, strlen(peer), &peer_address));
    assert_true(address_parse(own, strlen(own), &own_address));
    return address_is_local(&peer_address, &own_address);
}

TEST(loopback_addresses_are_local)
{
    assert_true(is_local("127.0.0.1", "127.0.0.1"));
    assert_true(is_local("127.9.8.7", "127.0.0.1"));
    assert_true(is_local("::ffff:127.0.0.1", "127.0.0.1"));
    assert_true(is_local("::1", "::1"));
}

TEST(the_servers_own_address_is_local)
{
    assert_true(is_local("192.0.2.1", "192.0.2.1"));
    assert_true(is_local("2001:db8::1", "2001:db8::1"));
}

TEST(other_addresses_are_not_local)
{
    assert_false(is_local("192.0.2.2", "192.0.2.1"));
    assert_false(is_local("2001:db8::2", "2001:db8::1"));
    assert_false(is_local("128.0.0.1", "192.0.2.1"));
    assert_false(is_local("126.255.255.255", "192.0.2.1"));
    assert_false(is_local("::2", "2001:db8::1"));
    assert_false(is_local("::127.0.0.1", "2001:db8::1"));
}
