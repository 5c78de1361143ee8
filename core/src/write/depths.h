/* How deep attributes may nest in the two versions of zTensor. */
#ifndef ZT_WRITE_DEPTHS_H
#define ZT_WRITE_DEPTHS_H

/* The deepest value of a manifest. */
#define ZT_DEPTH_ZT1 128
#define ZT_DEPTH_ZT2 32
/* Where the attributes of the file, and of an object, are. */
#define ZT_DEPTH_OF_FILE   1
#define ZT_DEPTH_OF_OBJECT 3

#endif
