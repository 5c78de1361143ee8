/* The steps of the pickle machine: the table from an opcode to its function. */
#ifndef ZT_PICKLE_STEPS_H
#define ZT_PICKLE_STEPS_H

#include "pickle/pickle.h"

/* The bytes that follow an opcode: of a counted argument, those after the length; of lines, without
 * the last newline. */
struct opcode_argument {
    const uint8_t *bytes;
    size_t length;
};

/* Does what the opcode at opcode_at means. Fails if its argument or the stack does not fit. */
typedef enum zt_status (*pickle_step)(struct pickle *pickle, const struct opcode_argument *argument,
                                      struct zt_error *error);

/* NULL for a byte that is not an opcode, for an opcode that is refused, and for STOP, which ends
 * the run. */
pickle_step pickle_step_of(uint8_t opcode);

#endif
