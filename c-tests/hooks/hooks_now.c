/* The same in a program that is bound when it starts, whose slots the linker has made read-only. */
#include "hooks_calls.c"
