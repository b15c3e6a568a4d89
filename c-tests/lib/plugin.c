/* A library that is loaded while the program runs. */
#include "hooked.h"

int plugin_entry(int x);
int plugin_entry(int x) { return plain(x) * 2; }
