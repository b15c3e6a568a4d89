// types.c as C++.
#include "types.c"
