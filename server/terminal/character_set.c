#include "terminal/character_set.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>

bool character_set_is_utf8(void)
{
    const locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool is_utf8;

    if (locale == (locale_t)0)
        return false;
    is_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return is_utf8;
}
