/* Keeps the support library non-empty on its own. */
#include "support.h"
