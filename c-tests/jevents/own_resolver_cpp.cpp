// own_resolver.c as C++.
#include "own_resolver.c"
