/* A library that is loaded while the program runs: it is hooked, and what it calls. */
#include "hooks.h"
#include <dlfcn.h>

static void plugin(const char *folder)
{
    char path[4100];
    int (*entry)(int);
    snprintf(path, sizeof path, "%s/lib/libplugin.so", folder);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(handle != NULL);
    *(void **)&entry = dlsym(handle, "plugin_entry");
    CHECK(entry != NULL);
    CHECK_EQ(entry(20), 42);
    CHECK(dlsym(handle, "no_such_function") == NULL && dlerror() != NULL);
    CHECK_EQ(dlclose(handle), 0);
}

int main(void)
{
    char self[4000];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0);
    self[length] = 0;
    *strrchr(self, '/') = 0;

    if (measured("TOPDOWN_REGIONS", "libplugin.so:plugin_*,libhooked.so:plain,libm.so.6:cos,nowhere:none,setjmp")) {
        plugin(self);
        plugin(self);
        CHECK(dlsym(RTLD_NEXT, "malloc") == dlvsym(RTLD_DEFAULT, "malloc", "GLIBC_2.2.5"));
        return 0;
    }
    REGION("plugin_entry", 2, 0);
    REGION("plain", 2, 0);
    CHECK(said("'nowhere:none' matches no function"));
    CHECK(said("'setjmp': cannot be hooked"));
    CHECK(!said("libplugin"));
    return 0;
}
