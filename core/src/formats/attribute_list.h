/* Attributes on their way into a model: pairs of a text key and a value, as one CBOR map. */
#ifndef ZT_FORMATS_ATTRIBUTE_LIST_H
#define ZT_FORMATS_ATTRIBUTE_LIST_H

#include "cbor/cbor_write.h"
#include "model/model_build.h"

/* Starts out cleared but for is_by_name; freed with zt_attribute_list_free. */
struct zt_attribute_list {
    bool is_by_name;        /* the map is in the order of names, once they have been checked */
    struct zt_buffer pairs; /* encoded, one after another */
    uint64_t count;
    struct zt_attribute_key *keys; /* those that zt_attribute_list_key added */
    size_t key_count;
    size_t key_capacity;
};

/* Adds a key, which lies in the builder's manifest; the caller then appends its value to
 * list->pairs. ZT_NO_MEMORY. */
enum zt_status zt_attribute_list_key(struct zt_attribute_list *list, struct zt_text key,
                                     struct zt_error *error);

/* Adds a pair that is encoded already, its key known to differ from the others. */
void zt_attribute_list_pair(struct zt_attribute_list *list, struct zt_text pair);

/* Rejects a key that occurs twice, at the second one, by the rule given. ZT_NO_MEMORY. */
enum zt_status zt_attribute_list_check(struct zt_attribute_list *list,
                                       const struct zt_builder *builder, const char *duplicate_rule,
                                       struct zt_error *error);

/* Copies the map, in the order of the additions or of names, into the arena of the builder's model;
 * a list of no pairs gives an empty map. ZT_NO_MEMORY, also for a value that could not be
 * appended. */
enum zt_status zt_attribute_list_keep(const struct zt_attribute_list *list,
                                      const struct zt_builder *builder, struct zt_text *out_map,
                                      struct zt_error *error);

/* Begins the list again and keeps its memory. */
void zt_attribute_list_clear(struct zt_attribute_list *list);
void zt_attribute_list_free(struct zt_attribute_list *list);

#endif
