/* Without topdown counters td_open says -ENODEV and why: that the core has none, or else, in a virtual machine, that it
 * is one.
 * needs: nothing or no-counters */
#include "pmu.h"
#include <cpuid.h>

static int virtual_machine(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c >> 31;
}

int main(void)
{
    td_t *td = (td_t *)-1;
    if (pmu_there())
        SKIP("this machine shows topdown counters");
    const int code = td_open(&td, NULL);
    if (code == 0 && getenv("MACHINE") == NULL)
        SKIP("this machine has general counters that serve");
    CHECK_EQ(code, -ENODEV);
    CHECK(td == (td_t *)-1);
    CHECK(last_error_with("no topdown counters"));
    if (!exists("/sys/bus/event_source/devices"))
        CHECK(last_error_with("/sys"));
    else if (virtual_machine() && !last_error_with("it is a"))
        CHECK(last_error_with("virtual machine"));
    return 0;
}
