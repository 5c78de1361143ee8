/* Collecting attributes for a model: pairs of a text key and a value, which become one CBOR map. */
#ifndef ZT_FORMATS_ATTRIBUTE_LIST_H
#define ZT_FORMATS_ATTRIBUTE_LIST_H

#include "cbor/cbor_write.h"
#include "model/model_build.h"

/* Starts zeroed except for is_by_name; freed with zt_attribute_list_free. */
struct zt_attribute_list {
    bool is_by_name;        /* sort the map by key; requires zt_attribute_list_check */
    struct zt_buffer pairs; /* encoded, one after another */
    uint64_t count;
    struct zt_attribute_key *keys; /* the keys added by zt_attribute_list_key */
    size_t key_count;
    size_t key_capacity;
};

/* Adds a key, which must point into the builder's manifest. The caller then appends the key's value
 * to list->pairs. ZT_NO_MEMORY. */
enum zt_status zt_attribute_list_key(struct zt_attribute_list *list, struct zt_text key,
                                     struct zt_error *error);

/* Adds an already encoded pair whose key is known to differ from all others. */
void zt_attribute_list_pair(struct zt_attribute_list *list, struct zt_text pair);

/* Rejects a key that occurs twice, with the given rule and the position of its second occurrence.
 * ZT_NO_MEMORY. */
enum zt_status zt_attribute_list_check(struct zt_attribute_list *list,
                                       const struct zt_builder *builder, const char *duplicate_rule,
                                       struct zt_error *error);

/* Copies the map, in the order of additions or of keys, into the arena of the builder's model; an
 * empty list gives an empty map. ZT_NO_MEMORY, also if appending a value failed earlier. */
enum zt_status zt_attribute_list_keep(const struct zt_attribute_list *list,
                                      const struct zt_builder *builder, struct zt_text *out_map,
                                      struct zt_error *error);

/* Empties the list but keeps its memory. */
void zt_attribute_list_clear(struct zt_attribute_list *list);
void zt_attribute_list_free(struct zt_attribute_list *list);

#endif
