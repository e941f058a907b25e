/* In C it is the same product as in matvec. */
#define matvec warp_rows
#include "matvec.c"
