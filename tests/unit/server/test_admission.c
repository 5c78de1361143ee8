/* Limits on connections: of the process, by descriptors, and for each address. */
#include "tests.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "disk/open_files.h"
#include "http/limits/admission.h"

static void set_descriptors(rlim_t count)
{
    struct rlimit files;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = count < files.rlim_max ? count : files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static unsigned limit_of(int64_t connections)
{
    struct config config;

    config_defaults(&config);
    config.limits.connections = connections;
    return open_files_for_connections(&config);
}

TEST(a_connection_takes_one_descriptor)
{
    set_descriptors(4096);
    assert_int_equal(limit_of(200), 200);
    assert_int_equal(limit_of(3072), 3072);
    assert_int_equal(limit_of(3073), 3072);
    assert_int_equal(limit_of(INT64_MAX), 3072);
}

TEST(few_descriptors_leave_half_to_connections)
{
    set_descriptors(100);
    assert_int_equal(limit_of(1000), 50);
    assert_int_equal(limit_of(7), 7);
    set_descriptors(4096);
}

TEST(there_is_room_for_one)
{
    assert_int_equal(limit_of(0), 1);
}

TEST(connections_over_the_limit_take_no_places)
{
    assert_true(admission_enter(2));
    assert_true(admission_enter(2));
    assert_false(admission_enter(2));
    assert_true(admission_is_open(2));
    /* The third is still there when one of the others has left. */
    admission_leave(true);
    assert_true(admission_enter(2));
    assert_false(admission_enter(2));
    for (unsigned i = 0; i < 2; i++) {
        admission_leave(true);
        admission_leave(false);
    }
    assert_true(admission_enter(1));
    admission_leave(true);
}

TEST(the_surplus_is_bounded)
{
    unsigned count = 0;

    for (; admission_is_open(2); count++)
        admission_enter(2);
    assert_int_equal(count, 2 + ADMISSION_SURPLUS);
    admission_leave(false);
    assert_true(admission_is_open(2));
    assert_false(admission_enter(2));
    assert_false(admission_is_open(2));
    /* A place may be free although the surplus is full. */
    admission_leave(true);
    assert_true(admission_is_open(2));
    admission_leave(true);
    while (count-- > 2)
        admission_leave(false);
}

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&storage;

    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
        six->sin6_family = AF_INET6;
    }
    return storage;
}

static bool enter(const char *text, unsigned limit)
{
    const struct sockaddr_storage address = address_of(text);

    return admission_enter_address((const struct sockaddr *)&address, limit);
}

static void leave(const char *text)
{
    const struct sockaddr_storage address = address_of(text);

    admission_leave_address((const struct sockaddr *)&address);
}

TEST(each_address_has_its_own_count)
{
    assert_true(enter("192.0.2.1", 2));
    assert_true(enter("192.0.2.1", 2));
    assert_false(enter("192.0.2.1", 2));
    assert_true(enter("192.0.2.2", 2));
    assert_true(enter("2001:db8::1", 2));
    leave("192.0.2.1");
    assert_true(enter("192.0.2.1", 2));
    assert_false(enter("192.0.2.1", 2));
    leave("192.0.2.1");
    leave("192.0.2.1");
    leave("192.0.2.2");
    leave("2001:db8::1");
}

TEST(an_address_that_left_begins_again)
{
    for (unsigned i = 0; i < 10; i++) {
        assert_true(enter("192.0.2.7", 1));
        assert_false(enter("192.0.2.7", 1));
        leave("192.0.2.7");
    }
}

TEST(a_mapped_address_is_the_address)
{
    assert_true(enter("192.0.2.9", 1));
    assert_false(enter("::ffff:192.0.2.9", 1));
    leave("::ffff:192.0.2.9");
    assert_true(enter("192.0.2.9", 1));
    leave("192.0.2.9");
}

TEST(many_addresses_share_the_table)
{
    char text[32];

    for (unsigned i = 0; i < 5000; i++) {
        snprintf(text, sizeof(text), "10.0.%u.%u", i / 250, i % 250);
        assert_true(enter(text, 1));
    }
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(text, sizeof(text), "10.0.%u.%u", i / 250, i % 250);
        assert_false(enter(text, 1));
        leave(text);
    }
}
