/* One page of the index of a folder, being written. */
#ifndef API_INDEX_PAGE_H
#define API_INDEX_PAGE_H

#include "base/json_write.h"
#include "base/memory.h"
#include "tree/tree_listing.h"

/* Zeroed, but for is_json, before the beginning. */
struct index_page {
    bool is_json;
    struct json json;
    struct zt_buffer html;
    char *next; /* the query of the next page ("?after=…"); NULL: this is the last one */
    bool failed;
};

/* folder: its path below the root; "": the root. */
void index_page_begin(struct index_page *page, const char *folder);
void index_page_add(struct index_page *page, const struct tree_entry *entry);
/* There are more behind the last one that was added. */
void index_page_next(struct index_page *page, const char *last, size_t limit);
void index_page_end(struct index_page *page);
/* The whole page, borrowed. False: out of memory. */
bool index_page_text(const struct index_page *page, struct zt_text *out_text);
void index_page_free(struct index_page *page);

#endif
