/* python.h: which Python has ptxemu. */
#ifndef PTXEMU_CUDA_PYTHON_H
#define PTXEMU_CUDA_PYTHON_H
#include <stddef.h>

enum { PX_PATH = 4096 };

/* Where a Python may be found, the best place first: writes the path of candidate `number`, and where it comes from to `why`.
 * 1, 0 if this place has none, -1 if there are no more places. */
int px_python(unsigned number, char path[PX_PATH], const char **why);

/* Whether the program is one of Python. */
int px_runs_in_python(void);

/* The folder of the package that this library came in, where Python finds its modules; 0 if there is none. */
int px_package_folder(char path[PX_PATH]);

#endif
