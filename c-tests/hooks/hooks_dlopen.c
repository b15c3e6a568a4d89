/* A library that is loaded while the program runs: it is hooked, and what it calls, in the program, too. */
#include "hooks.h"
#include <dlfcn.h>

/* The version of functions that are as old as the architecture. */
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

int host(int x);
int host(int x) { return x; }

static void plugin(void)
{
    int (*entry)(int);
    void *handle = dlopen("libplugin.so", RTLD_NOW | RTLD_LOCAL); /* found by this program's own RUNPATH */
    CHECK(handle != NULL);
    *(void **)&entry = dlsym(handle, "plugin_entry");
    CHECK(entry != NULL);
    CHECK_EQ(entry(20), 42);
    CHECK(dlsym(handle, "no_such_function") == NULL && dlerror() != NULL);
    CHECK_EQ(dlclose(handle), 0);
}

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "libplugin.so:plugin_*,hooks_dlopen:host,libhooked.so:plain,libm.so.6:cos,nowhere:none,setjmp")) {
        plugin();
        plugin();
        CHECK(dlsym(RTLD_NEXT, "malloc") == dlvsym(RTLD_DEFAULT, "malloc", OLDEST));
        return 0;
    }
    REGION("plugin_entry", 2, 0);
    REGION("plain", 2, 0);
    REGION("host", 2, 0);
    CHECK(said("'nowhere:none' matches no function"));
    CHECK(said("'setjmp': cannot be hooked"));
    CHECK(!said("libplugin"));
    return 0;
}
