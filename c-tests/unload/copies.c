/* Ten copies of the library in one program, each loaded by dlopen and with a handle and an error text of its own in each of two
 * threads: together they fit into what the C library keeps for thread-local storage that is loaded later. It is not linked with it. */
#include "check.h"
#include <dlfcn.h>
#include <link.h>

#define COPIES 10
static void *copies[COPIES];
#define COPYS(copy, function) ((__typeof__(&function))(uintptr_t)dlsym(copies[copy], #function))

static void load(int copy, const char *from)
{
    char command[8192], path[] = "/tmp/libtopdown-copy-XXXXXX";
    const int unused = mkstemp(path);
    CHECK(unused >= 0);
    close(unused);
    snprintf(command, sizeof command, "cp '%s' '%s'", from, path);
    CHECK_EQ(system(command), 0);
    copies[copy] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    if (copies[copy] == NULL)
        FAIL("copy %d: %s", copy + 1, dlerror());
}

static void *uses(void *unused)
{
    const struct td_options options = {.size = sizeof options, .flags = TD_FLAG_SIMULATE};
    char text[256];
    for (int copy = 0; copy < COPIES; copy++) {
        struct td_sample before, after;
        struct td_l1 l1;
        td_t *td = NULL;
        CHECK_EQ(COPYS(copy, td_last_error)(text, sizeof text), 0);
        CHECK_EQ(COPYS(copy, td_open)(&td, &options), 0);
        CHECK_EQ(COPYS(copy, td_read)(td, &before), 0);
        work(10000);
        CHECK_EQ(COPYS(copy, td_read)(td, &after), 0);
        CHECK_EQ(COPYS(copy, td_decode_l1)(&before, &after, &l1), 0);
        CHECK_EQ(COPYS(copy, td_read)(NULL, &after), -EINVAL);
        CHECK(COPYS(copy, td_last_error)(text, sizeof text) > 0);
        COPYS(copy, td_close)(td);
    }
    return unused;
}

int main(void)
{
    struct link_map *map;
    void *installed = dlopen("libtopdown.so.0", RTLD_NOW | RTLD_LOCAL);
    if (installed == NULL)
        FAIL("%s", dlerror());
    CHECK_EQ(dlinfo(installed, RTLD_DI_LINKMAP, &map), 0);
    copies[0] = installed;
    for (int copy = 1; copy < COPIES; copy++)
        load(copy, map->l_name);
    uses(NULL);
    join_thread(start_thread(uses, NULL));
    return 0;
}
