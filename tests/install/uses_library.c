/* A program outside the project that uses the installed library: digests need most of what it
 * links. */
#include <stdio.h>
#include <string.h>

#include <zt/digest.h>
#include <zt/model.h>

int main(void)
{
    struct zt_hasher *hasher = NULL;
    struct zt_digest digest;
    char text[ZT_DIGEST_TEXT_SIZE];

    if (zt_hasher_new(ZT_DIGEST_XXH3, &hasher) != ZT_OK)
        return 1;
    zt_hasher_update(hasher, "abc", 3);
    zt_hasher_finish(hasher, &digest);
    zt_hasher_free(hasher);
    zt_digest_format(&digest, text);
    puts(text);
    return strcmp(text, "xxh3:78af5f94892f3950") == 0 ? 0 : 1;
}
