/* vectors.h: vectors as wide as this processor's. */
#if defined __AVX512F__
enum { LANES = 16 };
#elif defined __AVX__
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int ints __attribute__((vector_size(4 * LANES)));
typedef unsigned words __attribute__((vector_size(4 * LANES)));
