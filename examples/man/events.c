/* Which numbers does the kernel want for an event? */
#include <linux/perf_event.h>
#include <jevents.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu-clock";
    struct perf_event_attr attr;

    if (resolve_event(name, &attr) < 0) {
        printf("%s: %s\n", name, jevent_get_error_details());
        return 1;
    }
    char *pmu = resolve_pmu((int)attr.type);
    printf("%s: type %u (%s), config %#llx\n", name, attr.type,
           pmu ? pmu : "?", (unsigned long long)attr.config);
    free(pmu);
    return 0;
}
