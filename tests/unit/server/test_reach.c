/* How far inside a network addresses are. */
#include "tests.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "remote/reach.h"

static enum reach reach_of_text(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return reach_of_address((const struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return reach_of_address((const struct sockaddr *)&v6);
}

TEST(addresses_are_sorted_by_how_far_inside_they_are)
{
    static const struct {
        const char *text;
        enum reach reach;
    } rows[] = {
        {"8.8.8.8", REACH_PUBLIC},
        {"172.15.255.255", REACH_PUBLIC},
        {"172.32.0.0", REACH_PUBLIC},
        {"2606:4700::1", REACH_PUBLIC},
        {"::ffff:8.8.8.8", REACH_PUBLIC},
        {"10.1.2.3", REACH_PRIVATE},
        {"172.16.0.0", REACH_PRIVATE},
        {"172.31.255.255", REACH_PRIVATE},
        {"192.168.0.1", REACH_PRIVATE},
        {"100.64.0.1", REACH_PRIVATE},
        {"fd12::1", REACH_PRIVATE},
        {"::ffff:10.0.0.1", REACH_PRIVATE},
        {"64:ff9b::a00:1", REACH_PRIVATE},
        {"2002:a00:1::", REACH_PRIVATE},
        {"127.0.0.1", REACH_LOOPBACK},
        {"127.255.0.1", REACH_LOOPBACK},
        {"0.0.0.0", REACH_LOOPBACK},
        {"::1", REACH_LOOPBACK},
        {"::", REACH_LOOPBACK},
        {"::ffff:127.0.0.1", REACH_LOOPBACK},
        {"169.254.169.254", REACH_LINK_LOCAL},
        {"::ffff:169.254.169.254", REACH_LINK_LOCAL},
        {"100.100.100.200", REACH_LINK_LOCAL},
        {"fd00:ec2::254", REACH_LINK_LOCAL},
        {"fe80::1", REACH_LINK_LOCAL},
        {"224.0.0.1", REACH_LINK_LOCAL},
        {"255.255.255.255", REACH_LINK_LOCAL},
        {"ff02::1", REACH_LINK_LOCAL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (reach_of_text(rows[i].text) != rows[i].reach)
            fail_msg("%s", rows[i].text);
}

TEST(hosts_are_names_addresses_or_neither)
{
    static const struct {
        const char *host;
        enum reach reach;
    } rows[] = {
        {"huggingface.co", REACH_ANY},
        {"7z.org", REACH_ANY},
        {"localhost", REACH_LOOPBACK},
        {"LocalHost.", REACH_LOOPBACK},
        {"a.localhost", REACH_LOOPBACK},
        {"notlocalhost", REACH_ANY},
        {"127.0.0.1", REACH_LOOPBACK},
        {"[::1]", REACH_LOOPBACK},
        {"[fe80::1%25eth0]", REACH_LINK_LOCAL},
        {"8.8.8.8", REACH_PUBLIC},
        {"2130706433", REACH_LINK_LOCAL},
        {"0x7f000001", REACH_LINK_LOCAL},
        {"127.1", REACH_LINK_LOCAL},
        {"0177.0.0.1", REACH_LINK_LOCAL},
        {"127.0.0.1.", REACH_LINK_LOCAL},
        {"[127.0.0.1]", REACH_LINK_LOCAL},
        {"[", REACH_LINK_LOCAL},
        {"", REACH_LINK_LOCAL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (reach_of_host(rows[i].host) != rows[i].reach)
            fail_msg("%s", rows[i].host);
}
