/* As in LIKWID from 5.0 on, whose likwid.h has the macros too. */
#include <likwid.h>
