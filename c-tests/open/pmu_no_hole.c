/* A control page that the kernel refuses to map (no locked memory left) leaves no hole in a handle's memory, where
 * others' mappings could get to be that a later handle would map over. */
#include "pmu.h"
#include <topdown_inline.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { HANDLES = 20 };

/* whether nothing is mapped where the control page belongs */
static int hole_in(td_t *td)
{
    unsigned char resident;
    return mincore((char *)td + TD_CONTROL_PAGE, 4096, &resident) != 0 && errno == ENOMEM;
}

static void setting(const char *path, const char *value)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(value, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

int main(void)
{
    td_t *td[HANDLES], *refused = NULL, *by_read = NULL;
    char limit[32] = "516", paranoid[32] = "2";
    const struct rlimit none = {0, 0};
    td_close(measured(NULL));
    if (!emulated() || geteuid() != 0)
        SKIP("changes the machine's settings");
    for (int i = 0; i < HANDLES; i++)
        td[i] = simulated(0);
    for (int i = 0; i < HANDLES; i++)
        td_close(td[i]); /* their memory is used again */

    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
    CHECK(file != NULL && fscanf(file, "%31s", paranoid) == 1);
    fclose(file);
    setting("/proc/sys/kernel/perf_event_mlock_kb", "0");
    setting("/proc/sys/kernel/perf_event_paranoid", "2");
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    CHECK_EQ(seteuid(65534), 0);
    const int code = td_open(&refused, NULL);
    const struct td_options options = options_of(TD_FLAG_NO_RDPMC, 0);
    const int other = td_open(&by_read, &options);
    CHECK_EQ(seteuid(0), 0);
    setting("/proc/sys/kernel/perf_event_mlock_kb", limit);
    setting("/proc/sys/kernel/perf_event_paranoid", paranoid);

    CHECK_EQ(code, -ENOMEM);
    CHECK_EQ(other, 0);
    CHECK(!hole_in(by_read));
    td_close(by_read);
    CHECK(!hole_in(by_read));
    for (int i = 0; i < HANDLES; i++)
        CHECK(!hole_in(td[i]));
    return 0;
}
