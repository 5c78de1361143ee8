/* Reads the pages of a commit's list of files. They come from a server that may be hostile. */
#ifndef UPSTREAM_LISTING_H
#define UPSTREAM_LISTING_H

#include "upstream/upstream.h"

/* Limits of one list. */
#define LISTING_FILES_MOST   ((size_t)200000)
#define LISTING_ENTRIES_MOST ((size_t)400000) /* with folders */
#define LISTING_PAGES_MOST   2000u
#define LISTING_BYTES_MOST   ((size_t)64 << 20)
/* Of one page: it is parsed as a whole, into many times its bytes. */
#define LISTING_PAGE_MOST    ((size_t)8 << 20)
#define LISTING_OBJECTS_MOST ((size_t)250000) /* and lists, of one page */
#define LISTING_VALUES_MOST  ((size_t)1000000)
/* No service keeps a larger file; the cache does not either. */
#define LISTING_FILE_MOST CACHE_FILE_BYTES_MOST

struct listing_builder;

/* has_oids: the oid of a file without "lfs" is git's hash of its content. NULL without memory. */
struct listing_builder *listing_begin(bool has_oids);
/* Takes the JSON of one page. ZT_UNAVAILABLE: it makes no sense, and the whole list with it;
 * ZT_LIMIT; ZT_NO_MEMORY. */
enum zt_status listing_add_page(struct listing_builder *builder, struct zt_text json,
                                struct zt_error *error);
/* Adds one object of a bucket. Keys that no file here can have are left out. ZT_LIMIT;
 * ZT_NO_MEMORY. */
enum zt_status listing_add(struct listing_builder *builder, struct zt_text path,
                           uint64_t size_bytes, const char *etag, struct zt_error *error);
/* Returns true if a file has "lfs": null: its oid is made up, because the upstream, a ztserve, does
 * not know its digest yet. */
bool listing_states_digests_late(const struct listing_builder *builder);
/* Returns the first file without a digest after this one (NULL: of all), to be filled in. NULL:
 * there is none. Until the next page. */
struct upstream_file *listing_without_digest(struct listing_builder *builder,
                                             struct upstream_file *after);
/* After the last page. Frees the builder in any case. The same errors. */
enum zt_status listing_end(struct listing_builder *builder, const char *commit,
                           struct upstream_listing **out_listing, struct zt_error *error);
/* Frees a builder that listing_end has not got. Takes NULL. */
void listing_drop(struct listing_builder *builder);

/* One more reference. */
struct upstream_listing *upstream_listing_hold(struct upstream_listing *listing);

/* Reads what a Hub says of a repository at a revision. ZT_UNAVAILABLE: it makes no sense. */
enum zt_status listing_read_commit(struct zt_text json, char out_commit[UPSTREAM_COMMIT_SIZE],
                                   int64_t *out_modified_ns, struct zt_error *error);

#endif
