/* Versions of access and the leases of loops. */
#include "tests.h"

#include "access/lease.h"

static struct access *load(void)
{
    static struct config config;
    char error[256];
    struct access *access;

    config_defaults(&config);
    access = access_load(&config, error, sizeof(error));
    assert_non_null(access);
    return access;
}

static void deliver(struct mailbox *mailbox)
{
    struct mail *mail = mailbox_take(mailbox);

    while (mail != NULL) {
        struct job *job = job_of(mail);

        mail = mail->next;
        job->done(job);
    }
}

TEST(lease_holds_its_version_until_its_last_use_ends)
{
    struct access *access = load();
    struct lease *lease = lease_new(access);

    assert_int_equal(atomic_load(&access->holders), 2);
    assert_ptr_equal(lease_use(lease), lease);
    lease_end(lease);
    assert_int_equal(atomic_load(&access->holders), 2);
    lease_end(lease);
    assert_int_equal(atomic_load(&access->holders), 1);
    access_release(access);
}

TEST(sent_lease_replaces_the_current_one_and_old_requests_keep_theirs)
{
    struct access *old = load();
    struct access *new = load();
    struct lease *current = lease_new(old);
    struct lease *request = lease_use(current);
    struct mailbox mailbox;

    assert_true(mailbox_open(&mailbox));
    lease_send(lease_new(new), &mailbox, &current);
    assert_ptr_equal(current->access, old);
    deliver(&mailbox);
    assert_ptr_equal(current->access, new);
    assert_ptr_equal(request->access, old);
    assert_int_equal(atomic_load(&old->holders), 2);
    lease_end(request);
    assert_int_equal(atomic_load(&old->holders), 1);
    lease_end(current);
    assert_int_equal(atomic_load(&new->holders), 1);
    mailbox_close(&mailbox);
    access_release(old);
    access_release(new);
}
