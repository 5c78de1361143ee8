/* The small pieces of server/base: processors, mailbox, recency, records, threads. */
#include "tests.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/processors.h"
#include "base/recency.h"
#include "base/record.h"
#include "base/thread.h"

/* --- processors --- */

struct text_file {
    const char *path;
    const char *text;
};

static bool read_table(void *context, const char *path, char *out_text, size_t size)
{
    for (const struct text_file *file = context; file->path != NULL; file++)
        if (strcmp(file->path, path) == 0) {
            snprintf(out_text, size, "%s", file->text);
            return true;
        }
    return false;
}

static unsigned allowed(const struct text_file *files, unsigned mask_count)
{
    return processors_allowed(
        &(struct processors_files){.read = read_table,
                                   .context = (struct text_file *)(uintptr_t)files},
        mask_count);
}

TEST(without_groups_the_mask_decides)
{
    static const struct text_file none[] = {{NULL, NULL}};
    static const struct text_file unlimited[] = {{"/proc/self/cgroup", "0::/a\n"},
                                                 {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"},
                                                 {NULL, NULL}};

    assert_int_equal(allowed(none, 8), 8);
    assert_int_equal(allowed(none, 0), 1);
    assert_int_equal(allowed(unlimited, 8), 8);
}

TEST(a_quota_of_version_2_is_rounded_up)
{
    static const struct {
        const char *text;
        unsigned wanted;
    } quotas[] = {{"150000 100000\n", 2},
                  {"100000 100000\n", 1},
                  {"1000 100000\n", 1},
                  {"400000 50000\n", 8},
                  {"2000000 100000", 16},
                  {"100000\n", 16},
                  {"", 16},
                  {"nonsense here", 16},
                  {"-1 100000\n", 16},
                  {"100000 0\n", 16},
                  {"999999999999999999999 1\n", 16}};

    for (size_t i = 0; i < sizeof(quotas) / sizeof(quotas[0]); i++) {
        const struct text_file files[] = {{"/proc/self/cgroup", "0::/a\n"},
                                          {"/sys/fs/cgroup/a/cpu.max", quotas[i].text},
                                          {NULL, NULL}};

        assert_int_equal(allowed(files, 16), quotas[i].wanted);
    }
}

TEST(the_least_quota_on_the_way_up_counts)
{
    static const struct text_file files[] = {{"/proc/self/cgroup", "0::/a/b/c\n"},
                                             {"/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n"},
                                             {"/sys/fs/cgroup/a/b/cpu.max", "500000 100000\n"},
                                             {"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"},
                                             {NULL, NULL}};
    static const struct text_file container[] = {{"/proc/self/cgroup", "0::/\n"},
                                                 {"/sys/fs/cgroup/cpu.max", "50000 100000\n"},
                                                 {NULL, NULL}};

    assert_int_equal(allowed(files, 16), 3);
    assert_int_equal(allowed(files, 2), 2);
    assert_int_equal(allowed(container, 16), 1);
}

TEST(a_quota_of_version_1_is_found_by_its_controller)
{
    static const struct text_file files[] = {
        {"/proc/self/cgroup", "9:name=cpu:/x\n3:cpuset:/x\n2:cpuacct,cpu:/docker/1\n0::/\n"},
        {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n"},
        {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {NULL, NULL}};
    static const struct text_file unlimited[] = {
        {"/proc/self/cgroup", "1:cpu:/\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
        {NULL, NULL}};

    assert_int_equal(allowed(files, 16), 3);
    assert_int_equal(allowed(unlimited, 16), 16);
}

TEST(strange_group_files_limit_nothing)
{
    static const char *const texts[] = {
        "", "\n\n", "0:", "0::", "::/", ":::::", "1:cpu", "1:cpu:x\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct text_file files[] = {{"/proc/self/cgroup", texts[i]}, {NULL, NULL}};

        assert_int_equal(allowed(files, 4), 4);
    }
}

TEST(the_count_is_within_the_mask_and_stays)
{
    cpu_set_t set;

    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    assert_in_range(processors_count(), 1, (unsigned)CPU_COUNT(&set));
    assert_int_equal(processors_count(), processors_count());
}

/* --- mailbox --- */

struct letter {
    struct mail mail;
    unsigned sender;
    unsigned number;
};

#define SENDERS 4
#define LETTERS 5000

static struct mailbox shared;
static struct letter letters[SENDERS][LETTERS];

static void *send_letters(void *argument)
{
    const unsigned sender = (unsigned)(uintptr_t)argument;

    for (unsigned i = 0; i < LETTERS; i++) {
        letters[sender][i] = (struct letter){.sender = sender, .number = i};
        mailbox_put(&shared, &letters[sender][i].mail);
    }
    return NULL;
}

static bool is_ringing(const struct mailbox *mailbox, int timeout_ms)
{
    struct pollfd waited = {.fd = mailbox->descriptor, .events = POLLIN};

    return poll(&waited, 1, timeout_ms) == 1;
}

TEST(mail_of_every_sender_arrives_once_and_in_order)
{
    pthread_t threads[SENDERS];
    unsigned next[SENDERS] = {0};
    unsigned received = 0;

    assert_true(mailbox_open(&shared));
    for (uintptr_t i = 0; i < SENDERS; i++)
        assert_int_equal(thread_start(&threads[i], "sender", send_letters, (void *)i), 0);
    while (received < SENDERS * LETTERS) {
        assert_true(is_ringing(&shared, 10000));
        mailbox_silence(&shared);
        for (struct mail *mail = mailbox_take(&shared); mail != NULL; mail = mail->next) {
            const struct letter *letter = (const struct letter *)mail;

            assert_int_equal(letter->number, next[letter->sender]);
            next[letter->sender]++;
            received++;
        }
    }
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    assert_null(mailbox_take(&shared));
    mailbox_close(&shared);
    assert_int_equal(shared.descriptor, -1);
}

TEST(a_ring_wakes_without_mail)
{
    struct mailbox mailbox;

    assert_true(mailbox_open(&mailbox));
    assert_false(is_ringing(&mailbox, 0));
    mailbox_ring(&mailbox);
    mailbox_ring(&mailbox);
    assert_true(is_ringing(&mailbox, 0));
    mailbox_silence(&mailbox);
    assert_false(is_ringing(&mailbox, 0));
    assert_null(mailbox_take(&mailbox));
    mailbox_close(&mailbox);
}

/* --- recency --- */

TEST(the_list_is_in_order_of_last_use)
{
    struct recency list = {0};
    struct recency_link links[4];
    static const int wanted[] = {1, 3, 0};
    const struct recency_link *at;

    for (size_t i = 0; i < 4; i++)
        recency_add(&list, &links[i]);
    assert_ptr_equal(list.oldest, &links[0]);
    recency_touch(&list, &links[0]);
    recency_touch(&list, &links[0]);
    recency_remove(&list, &links[2]);
    assert_int_equal(list.count, 3);
    at = list.oldest;
    for (size_t i = 0; i < 3; i++, at = at->newer)
        assert_ptr_equal(at, &links[wanted[i]]);
    assert_null(at);
    while (list.count > 0)
        recency_remove(&list, list.newest);
    assert_null(list.oldest);
    assert_null(list.newest);
}

/* --- records --- */

static void write_sample(struct record_writer *writer)
{
    record_write_uint(writer, 0x123456, 3);
    record_write_text(writer, "a text");
    record_write_text(writer, "");
    record_write_text(writer, NULL);
    record_write_uint(writer, UINT64_MAX, 8);
    record_write_bytes(writer, "raw", 3);
    record_write_hash(writer, 0);
}

static bool read_sample(const uint8_t *bytes, size_t length)
{
    struct record_reader reader = {.at = bytes, .left = length};
    const uint64_t number = record_read_uint(&reader, 3);
    char *text = record_read_text(&reader);
    char *empty = record_read_text(&reader);
    char *absent = record_read_text(&reader);
    const uint64_t most = record_read_uint(&reader, 8);
    const uint8_t *raw = record_read_bytes(&reader, 3);
    bool good = record_read_hash(&reader, bytes);

    if (good) {
        assert_int_equal(number, 0x123456);
        assert_string_equal(text, "a text");
        assert_string_equal(empty, "");
        assert_null(absent);
        assert_int_equal(most, UINT64_MAX);
        assert_memory_equal(raw, "raw", 3);
        assert_int_equal(reader.left, 0);
    }
    free(text);
    free(empty);
    free(absent);
    return good;
}

TEST(a_record_reads_as_written_and_no_other_way)
{
    struct record_writer writer = {0};

    write_sample(&writer);
    assert_false(writer.failed);
    assert_true(read_sample(writer.bytes, writer.length));
    for (size_t cut = 0; cut < writer.length; cut++)
        assert_false(read_sample(writer.bytes, cut));
    for (size_t bit = 0; bit < 8 * writer.length; bit++) {
        writer.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(read_sample(writer.bytes, writer.length));
        writer.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    record_writer_free(&writer);
    assert_null(writer.bytes);
}

TEST(a_record_stops_at_its_limit)
{
    struct record_writer writer = {.limit_bytes = 16};

    record_write_uint(&writer, 1, 8);
    record_write_uint(&writer, 2, 8);
    assert_false(writer.failed);
    record_write_uint(&writer, 3, 1);
    assert_true(writer.failed);
    record_write_hash(&writer, 0);
    assert_int_equal(writer.length, 16);
    assert_int_equal(writer.bytes[0], 1);
    record_writer_free(&writer);
}

TEST(a_checked_record_fails_if_any_bit_differs_or_the_end_is_cut)
{
    struct record_writer writer = {0};
    struct record_reader reader;

    record_write_text(&writer, "body");
    record_write_hash(&writer, 0);
    reader = record_reader_checked(writer.bytes, writer.length);
    assert_false(reader.failed);
    assert_int_equal(reader.left, writer.length - RECORD_HASH_BYTES);
    for (size_t length = 0; length < writer.length; length++)
        assert_true(record_reader_checked(writer.bytes, length).failed);
    for (size_t bit = 0; bit < 8 * writer.length; bit++) {
        writer.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(record_reader_checked(writer.bytes, writer.length).failed);
        writer.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    record_writer_free(&writer);
}

/* --- threads and clocks --- */

static void *read_mask(void *argument)
{
    pthread_sigmask(SIG_SETMASK, NULL, argument);
    return NULL;
}

TEST(threads_start_with_signals_blocked_and_leave_the_starter_alone)
{
    sigset_t before;
    sigset_t inside;
    sigset_t after;
    pthread_t thread;

    sigemptyset(&inside);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(thread_start(&thread, "fifteen letters", read_mask, &inside), 0);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_true(sigismember(&inside, SIGTERM));
    assert_true(sigismember(&inside, SIGHUP));
    /* Blocked, it would end the program when a mapped file is truncated while it is read. */
    assert_false(sigismember(&inside, SIGBUS));
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

TEST(clocks_agree_on_their_units)
{
    const int64_t begun_ns = clock_ns();

    assert_in_range(clock_ms() - begun_ns / CLOCK_NS_PER_MS, 0, 10000);
    assert_in_range(clock_ms() + 100 - clock_coarse_ms(), 0, 10000);
    assert_in_range(clock_wall_ns() / CLOCK_NS_PER_S - (int64_t)time(NULL) + 1, 0, 10);
}
