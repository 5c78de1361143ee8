/* Queries: finding parameters and decoding them. Stands in for the parts of a request that the
 * reader of queries asks: its target and its memory. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "http/exchange/request_state.h"

#define BLOCKS_MAX 4096

static const char *target;
static void *blocks[BLOCKS_MAX];
static unsigned block_count;

const char *request_target(const struct request *request)
{
    (void)request;
    return target;
}

void *request_allocate(struct request *request, size_t length)
{
    (void)request;
    if (block_count == BLOCKS_MAX)
        return NULL;
    return blocks[block_count++] = malloc(length);
}

static void release(void)
{
    while (block_count > 0)
        free(blocks[--block_count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const char *const names[] = {"prefix", "match", "", "a"};
    static struct request_state state;
    char *text = fuzz_string(bytes, length);

    target = text;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct zt_text value;

        state.malformed_parameter = NULL;
        for (unsigned nth = 0; nth < 8 && request_query(&state.request, names[i], nth, &value);
             nth++)
            FUZZ_ASSERT(value.bytes != NULL && value.length <= strlen(text));
        FUZZ_ASSERT(state.malformed_parameter == NULL || strchr(text, '%') != NULL);
        release();
    }
    free(text);
    return 0;
}
