/* Addresses and networks as the configuration names them. */
#include "tests.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "config/network.h"

static struct address address_from(const char *text)
{
    struct address address;

    assert_true(address_parse(text, strlen(text), &address));
    return address;
}

TEST(addresses_come_back_as_text)
{
    static const char *const texts[][2] = {{"192.0.2.1", "192.0.2.1"},
                                           {"2001:db8::1", "2001:db8::1"},
                                           {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
                                           {"::ffff:192.0.2.1", "192.0.2.1"},
                                           {"::", "::"}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct address address = address_from(texts[i][0]);
        char text[ADDRESS_TEXT_SIZE];

        address_print(&address, text);
        assert_string_equal(text, texts[i][1]);
    }
}

TEST(other_texts_are_no_addresses)
{
    static const char *const texts[] = {"",      "localhost", "192.0.2",       "192.0.2.256",
                                        "[::1]", "::1%lo",    "192.0.2.1:80",  "1:2:3",
                                        " ::1",  "0x7f.1",    "2001:db8::1::2"};
    struct address address;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(address_parse(texts[i], strlen(texts[i]), &address));
    assert_false(address_parse("::1\0x", 5, &address));
}

TEST(networks_contain_their_addresses)
{
    static const struct {
        const char *network;
        const char *address;
        bool contains;
    } cases[] = {
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"10.1.2.3/8", "10.9.9.9", true},
        {"192.0.2.128/25", "192.0.2.127", false},
        {"192.0.2.128/25", "192.0.2.200", true},
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.2", false},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "203.0.113.9", true},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"::ffff:10.0.0.0/104", "10.1.1.1", true},
        {"fd00::1/128", "fd00::1", true},
        {"192.0.2.1/32", "192.0.2.1", true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct address address = address_from(cases[i].address);
        struct network network;

        assert_true(network_parse(cases[i].network, strlen(cases[i].network), &network));
        assert_int_equal(network_contains(&network, &address), cases[i].contains);
    }
}

TEST(other_texts_are_no_networks)
{
    static const char *const texts[] = {"",
                                        "/8",
                                        "10.0.0.0/",
                                        "10.0.0.0/33",
                                        "::/129",
                                        "10.0.0.0/-1",
                                        "10.0.0.0/8x",
                                        "10.0.0.0/8/8",
                                        "10/8",
                                        "10.0.0.0/0008",
                                        "10.0.0.0 /8"};
    struct network network;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(network_parse(texts[i], strlen(texts[i]), &network));
}

TEST(sockets_have_addresses_of_one_kind)
{
    struct sockaddr_in socket_4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xC0000201)};
    struct sockaddr other = {.sa_family = AF_UNIX};
    const struct address expected = address_from("192.0.2.1");
    struct address address;

    assert_true(address_of_socket((const struct sockaddr *)&socket_4, &address));
    assert_memory_equal(&address, &expected, sizeof(address));
    assert_false(address_of_socket(&other, &address));
}
