/* What an upstream sends: lists of files, commits, links and redirects. Whatever is accepted keeps
 * the promises of upstream.h. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/address.h"
#include "upstream/listing.h"

static const char commit_text[] = "0123456789abcdef0123456789abcdef01234567";

static void check_path(const char *path)
{
    size_t begin = 0;

    FUZZ_ASSERT(strlen(path) < UPSTREAM_PATH_SIZE);
    for (size_t i = 0; i <= strlen(path); i++) {
        FUZZ_ASSERT(path[i] == '\0' || (unsigned char)path[i] >= ' ');
        if (path[i] != '\0' && path[i] != '/')
            continue;
        FUZZ_ASSERT(i > begin && path[begin] != '.');
        begin = i + 1;
    }
}

static void check_listing(const struct upstream_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        const struct upstream_file *file = &listing->files[i];

        check_path(file->path);
        FUZZ_ASSERT(i == 0 || strcmp(listing->files[i - 1].path, file->path) < 0);
        FUZZ_ASSERT(file->size_bytes <= LISTING_FILE_MOST);
    }
}

static void read_list(struct zt_text json, bool has_oids)
{
    struct listing_builder *builder = listing_begin(has_oids);
    struct upstream_listing *listing = NULL;
    struct zt_error error;
    enum zt_status status;

    FUZZ_ASSERT(builder != NULL);
    status = listing_add_page(builder, json, &error);
    if (status != ZT_OK) {
        FUZZ_ASSERT(status == ZT_UNAVAILABLE || status == ZT_LIMIT);
        listing_drop(builder);
        return;
    }
    status = listing_end(builder, commit_text, &listing, &error);
    FUZZ_ASSERT(status == ZT_OK || status == ZT_UNAVAILABLE);
    FUZZ_ASSERT((status == ZT_OK) == (listing != NULL));
    if (listing != NULL)
        check_listing(listing);
    upstream_listing_free(listing);
}

static void read_commit(struct zt_text json)
{
    char commit[UPSTREAM_COMMIT_SIZE];
    int64_t modified_ns;

    if (listing_read_commit(json, commit, &modified_ns, NULL) != ZT_OK)
        return;
    FUZZ_ASSERT(upstream_is_commit(zt_text_from(commit)));
    FUZZ_ASSERT(modified_ns >= 0);
}

/* An address that was accepted is read again as itself. */
static void check_address(const struct upstream_address *address)
{
    char url[ADDRESS_ORIGIN_SIZE + REMOTE_LOCATION_SIZE];
    struct upstream_address again;

    FUZZ_ASSERT(address->target[0] == '/');
    FUZZ_ASSERT(strpbrk(address->target, " \r\n#") == NULL);
    FUZZ_ASSERT(strpbrk(address->origin, "@\\ \r\n?#") == NULL);
    snprintf(url, sizeof(url), "%s%s", address->origin, address->target);
    FUZZ_ASSERT(address_read(zt_text_from(url), &again));
    FUZZ_ASSERT(address_is_same_origin(&again, address));
    FUZZ_ASSERT(strcmp(again.target, address->target) == 0);
    (void)address_reach(address);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *copy = fuzz_string(bytes, length);
    const struct zt_text text = {copy, length};
    struct upstream_address from;
    struct upstream_address address;
    struct zt_text url;

    read_list(text, true);
    read_list(text, false);
    read_commit(text);
    FUZZ_ASSERT(address_read(zt_text_from("https://hub.example:8080/a"), &from));
    if (address_next(text, &url) == ADDRESS_LINK_FOUND) {
        FUZZ_ASSERT(url.bytes >= copy && url.bytes + url.length <= copy + length);
        if (address_follow(&from, url, &address))
            check_address(&address);
    }
    if (address_follow(&from, text, &address))
        check_address(&address);
    free(copy);
    return 0;
}
