/* The kernel's interface, by version: https://docs.kernel.org/userspace-api/landlock.html.
 *
 * A right that is handled and that no rule grants is denied; a right that is not handled is not
 * affected. So every right that the kernel knows is handled. The numbers are spelled out here,
 * since the headers of Debian 12 lack those of later versions. */
#include "sandbox/landlock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(n) (UINT64_C(1) << (n))

#define EXECUTE     BIT(0)
#define WRITE_FILE  BIT(1)
#define READ_FILE   BIT(2)
#define READ_DIR    BIT(3)
#define REMOVE_DIR  BIT(4)
#define REMOVE_FILE BIT(5)
#define MAKE_DIR    BIT(7)
#define MAKE_REG    BIT(8)
#define REFER       BIT(13) /* link or rename into another folder */
#define TRUNCATE    BIT(14)

/* From EXECUTE on: those of version 1, among them making devices, sockets, FIFOs and links. */
#define FILES_1 (BIT(13) - 1)
#define FILES_2 (FILES_1 | REFER)
#define FILES_3 (FILES_2 | TRUNCATE)
#define FILES_5 (FILES_3 | BIT(15)) /* ioctl on devices */

#define BIND_TCP    BIT(0)
#define CONNECT_TCP BIT(1)

#define SCOPE_ABSTRACT_SOCKETS BIT(0)
#define SCOPE_SIGNALS          BIT(1)

#define ASK_VERSION 1U
#define PATH_RULE   1

/* The rights of a file that is not a folder. */
#define RIGHTS_OF_FILES (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE)

/* The kernel takes a structure that is longer than its own if the rest is zero. */
struct ruleset {
    uint64_t files;
    uint64_t network;
    uint64_t scoped;
};

struct path_rule {
    uint64_t rights;
    int32_t descriptor;
} __attribute__((packed));

static const uint64_t rights_of[] = {
    [SANDBOX_READ] = READ_FILE | READ_DIR,
    [SANDBOX_FILES] = READ_FILE,
    [SANDBOX_WRITE] = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE |
                      MAKE_DIR | MAKE_REG | REFER,
    [SANDBOX_UNNAMED] = READ_FILE | WRITE_FILE | TRUNCATE,
};

static struct ruleset ruleset_of(int version, bool connects)
{
    struct ruleset ruleset = {.files = FILES_1};

    if (version >= 2)
        ruleset.files = FILES_2;
    if (version >= 3)
        ruleset.files = FILES_3;
    if (version >= 4)
        ruleset.network = connects ? BIND_TCP : BIND_TCP | CONNECT_TCP;
    if (version >= 5)
        ruleset.files = FILES_5;
    if (version >= 6)
        ruleset.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
    return ruleset;
}

static bool is_pseudo_file(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0;
}

/* A place that does not exist, or that this user may not look at, is no reason to give up. */
static bool allow(int rules, uint64_t handled, const struct sandbox_place *place)
{
    struct path_rule rule = {.rights = rights_of[place->access] & handled,
                             .descriptor = open(place->path, O_PATH | O_CLOEXEC)};
    struct stat info;
    bool added;
    int os_error;

    if (rule.descriptor < 0)
        return true;
    if (fstat(rule.descriptor, &info) == 0 && !S_ISDIR(info.st_mode))
        rule.rights &= RIGHTS_OF_FILES;
    assert(rule.rights != 0);
    added = syscall(SYS_landlock_add_rule, rules, PATH_RULE, &rule, 0U) == 0;
    os_error = errno;
    /* The rule is about an inode. That of a pseudo file is made anew, and the rule lost, once its
     * name is forgotten: an open descriptor prevents that until the process ends. */
    if (!added || !is_pseudo_file(place->path))
        close(rule.descriptor);
    errno = os_error;
    return added;
}

static bool is_written(const struct sandbox_place *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (places[i].access == SANDBOX_WRITE)
            return true;
    return false;
}

static bool restrict_to(int rules, uint64_t handled, const struct sandbox_place *places,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!allow(rules, handled, &places[i]))
            return false;
    return syscall(SYS_landlock_restrict_self, rules, 0U) == 0;
}

int landlock_confine(const struct sandbox_place *places, size_t count, bool connects)
{
    const int version = (int)syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, ASK_VERSION);
    struct ruleset ruleset = ruleset_of(version, connects);
    bool restricted;
    int os_error;
    int rules;

    if (version < 1)
        return -1;
    if (version < 2 && is_written(places, count)) {
        errno = ENOTSUP;
        return -1;
    }
    rules = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0U);
    if (rules < 0)
        return -1;
    restricted = restrict_to(rules, ruleset.files, places, count);
    os_error = errno;
    close(rules);
    errno = os_error;
    return restricted ? version : -1;
}
