/* Two copies of the library in one program, as a static one in a plugin would be: somebody writes 0 to the PMU's `rdpmc` file,
 * and each says TD_ENORDPMC, whichever's handler of SIGSEGV was there first. */
#include "pmu.h"
#include <dlfcn.h>

static int (*open_copy)(td_t **, const struct td_options *);
static int (*read_copy)(td_t *, struct td_sample *);
static void (*close_copy)(td_t *);

static void grant_again(void) { rdpmc_is(1); }

/* The library's file under another name is another library. */
static void load_copy(void)
{
    Dl_info info;
    char command[4096], copy[] = "/tmp/libtopdown-copy-XXXXXX";
    CHECK(dladdr((void *)(uintptr_t)td_open, &info) != 0);
    const int fd = mkstemp(copy);
    CHECK(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "cp %s %s", info.dli_fname, copy);
    CHECK_EQ(system(command), 0);
    void *library = dlopen(copy, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    unlink(copy);
    if (library == NULL)
        FAIL("%s", dlerror());
    *(void **)&open_copy = dlsym(library, "td_open");
    *(void **)&read_copy = dlsym(library, "td_read");
    *(void **)&close_copy = dlsym(library, "td_close");
    CHECK((uintptr_t)open_copy != (uintptr_t)td_open);
}

static void both(int copy_first)
{
    struct td_sample sample;
    td_t *td = NULL, *other = NULL;
    load_copy();
    if (copy_first)
        CHECK_EQ(open_copy(&other, NULL), 0);
    td = measured(NULL);
    if (!copy_first)
        CHECK_EQ(open_copy(&other, NULL), 0);
    td_must(td_read(td, &sample));
    CHECK_EQ(read_copy(other, &sample), 0);
    rdpmc_is(0);
    /* the kernel rotates them on the counters, and only who is on them executes RDPMC */
    int code = 0, copys = 0;
    for (int turn = 0; turn < 500 && (code == 0 || copys == 0); turn++) {
        code = td_read(td, &sample);
        copys = read_copy(other, &sample);
        work(1000000);
    }
    rdpmc_is(1);
    CHECK_EQ(code, TD_ENORDPMC);
    CHECK_EQ(copys, TD_ENORDPMC);
    close_copy(other);
    td_close(td);
}

int main(int argc, char **argv)
{
    atexit(grant_again);
    in_both_orders(argc, argv, both);
    return 0;
}
