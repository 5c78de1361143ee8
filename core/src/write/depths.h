/* How deeply attributes may nest in the two versions of zTensor. */
#ifndef ZT_WRITE_DEPTHS_H
#define ZT_WRITE_DEPTHS_H

/* The greatest depth of a value in a manifest. */
#define ZT_DEPTH_ZT1 128
#define ZT_DEPTH_ZT2 32
/* The depth of the attributes of the file, and of an object. */
#define ZT_DEPTH_OF_FILE   1
#define ZT_DEPTH_OF_OBJECT 3

#endif
