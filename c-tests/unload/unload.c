/* A program that loads the library (dlopen) and unloads it: handles that are open then stay good, threads that used it end
 * well, and it can be loaded again, also by many threads at once. It is not linked with it. */
#include "check.h"
#include <dlfcn.h>
#ifndef OPTIONS
#define OPTIONS ((struct td_options){.size = sizeof(struct td_options), .flags = TD_FLAG_SIMULATE}) /* pmu_unload.c has others */
#endif

/* the library as a program finds it that knows no more than its name */
struct library {
    void *loaded;
    int (*open)(td_t **, const struct td_options *);
    int (*read)(td_t *, struct td_sample *);
    int (*reset)(td_t *);
    int (*decode)(const struct td_sample *, const struct td_sample *, struct td_l1 *);
    void (*close)(td_t *);
    int (*last_error)(char *, size_t);
};

static void *named(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL)
        FAIL("%s: %s", name, dlerror());
    return found;
}

static struct library load(void)
{
    struct library lib;
    lib.loaded = dlopen("libtopdown.so.0", RTLD_NOW | RTLD_LOCAL);
    if (lib.loaded == NULL)
        FAIL("%s", dlerror());
    *(void **)&lib.open = named(lib.loaded, "td_open");
    *(void **)&lib.read = named(lib.loaded, "td_read");
    *(void **)&lib.reset = named(lib.loaded, "td_reset");
    *(void **)&lib.decode = named(lib.loaded, "td_decode_l1");
    *(void **)&lib.close = named(lib.loaded, "td_close");
    *(void **)&lib.last_error = named(lib.loaded, "td_last_error");
    return lib;
}

static void unload(const struct library *lib) { CHECK_EQ(dlclose(lib->loaded), 0); }

static td_t *open_with(const struct library *lib)
{
    td_t *td = NULL;
    char text[1024] = "";
    const struct td_options options = OPTIONS;
    const int code = lib->open(&td, &options);
    if (code == 0)
        return td;
    lib->last_error(text, sizeof text);
    SKIP("td_open: %d: %s", code, text);
}

static void use(const struct library *lib, td_t *td)
{
    struct td_sample before, after;
    struct td_l1 l1;
    CHECK_EQ(lib->read(td, &before), 0);
    work(10000);
    CHECK_EQ(lib->read(td, &after), 0);
    CHECK(after.slots > before.slots);
    CHECK_EQ(lib->decode(&before, &after, &l1), 0);
    CHECK_EQ(lib->reset(td), 0);
    CHECK_EQ(lib->read(NULL, &after), -EINVAL);
}

/* a thread that ends after the library is gone, as far as it knows */
static void *outlives(void *unused)
{
    const struct library lib = load();
    td_t *td = open_with(&lib);
    use(&lib, td);
    lib.close(td);
    unload(&lib);
    work(1000000); /* is switched out meanwhile, or not */
    return unused;
}

static void *loads_often(void *unused)
{
    for (int i = 0; i < 20; i++) {
        const struct library lib = load();
        td_t *td = open_with(&lib);
        unload(&lib);
        use(&lib, td);
        lib.close(td);
    }
    return unused;
}

int main(void)
{
    CHECK(dlopen("libtopdown.so.0", RTLD_NOW | RTLD_NOLOAD) == NULL); /* not linked with it */
    join_thread(start_thread(outlives, NULL));

    const struct library first = load();
    td_t *td = open_with(&first);
    use(&first, td);
    unload(&first);
    use(&first, td); /* it is still there */
    const struct library second = load();
    CHECK(second.read == first.read);
    use(&second, td);
    second.close(td);
    td = open_with(&second);
    use(&second, td);
    unload(&second);

    pthread_t thread[16];
    for (int i = 0; i < 16; i++)
        thread[i] = start_thread(i % 2 ? loads_often : outlives, NULL);
    for (int i = 0; i < 16; i++)
        join_thread(thread[i]);
    use(&first, td);
    first.close(td);
    CHECK_EQ(perf_descriptors(), 0);
    void *still = dlopen("libtopdown.so.0", RTLD_NOW | RTLD_NOLOAD);
    CHECK(still != NULL); /* NODELETE */
    CHECK_EQ(dlclose(still), 0);
    return 0;
}
