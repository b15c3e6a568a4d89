/* A library that is loaded while the program runs; built with -finstrument-functions. */
#include "hooked.h"

int plugin_entry(int x);
int host(int x) __attribute__((weak)); /* the program's, if it has it */

static __attribute__((noinline)) int inside_plugin(int x) { return plain(x); }

int plugin_entry(int x) { return inside_plugin(x) * 2 + (host ? host(0) : 0); }
