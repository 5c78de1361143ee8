/* How the messages begin of rules that a file breaks which ends before it says. */
#ifndef ZT_BASE_CUT_OFF_H
#define ZT_BASE_CUT_OFF_H

#define CUT_OFF "the file is cut off: "

#endif
