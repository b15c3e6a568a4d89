/* A program built with -finstrument-functions: the functions that are named are regions, static ones too, also in a library
 * that comes later, and when a longjmp leaves one it is unended. */
#include "hooks.h"
#include <dlfcn.h>
#include <setjmp.h>

static jmp_buf outside;

static __attribute__((noinline)) int wanted_inner(int x)
{
    if (x < 0)
        longjmp(outside, 1);
    return x + 1;
}

static __attribute__((noinline)) int unwanted(int x) { return wanted_inner(x) + 1; }

__attribute__((noinline)) int wanted_outer(int x);
__attribute__((noinline)) int wanted_outer(int x) { return unwanted(x) + unwanted(x); }

int main(void)
{
    if (measured("TOPDOWN_FUNCTIONS", "wanted_*,inside_*")) {
        for (volatile int i = 0; i < 10; i++)
            CHECK_EQ(wanted_outer(i), 2 * i + 4);
        if (setjmp(outside) == 0)
            wanted_outer(-1);
        CHECK_EQ(wanted_inner(1), 2);
        int (*entry)(int);
        void *handle = dlopen("libplugin.so", RTLD_NOW);
        CHECK(handle != NULL);
        *(void **)&entry = dlsym(handle, "plugin_entry");
        CHECK_EQ(entry(20), 42);
        return 0;
    }
    REGION("wanted_outer", 10, 1);
    REGION("wanted_inner", 21, 1);
    REGION("inside_plugin", 1, 0);
    REGION("plugin_entry", 0, 0);
    REGION("unwanted", 0, 0);
    REGION("main", 0, 0);
    return 0;
}
