/* Writes one page of the index of a folder. */
#ifndef API_INDEX_PAGE_H
#define API_INDEX_PAGE_H

#include "base/json_write.h"
#include "base/memory.h"
#include "tree/tree_listing.h"

/* Zeroed at first, except for is_json. */
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
/* Sets the link to the next page, which begins after the last entry. */
void index_page_next(struct index_page *page, const char *last, size_t limit);
void index_page_end(struct index_page *page);
/* Returns the whole page, borrowed. Returns false if out of memory. */
bool index_page_text(const struct index_page *page, struct zt_text *out_text);
void index_page_free(struct index_page *page);

#endif
