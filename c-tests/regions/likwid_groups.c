/* A program that executes everything once for each of LIKWID's groups, as those of its examples do that ask for their number. */
#include <likwid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAYS(condition) do { if (!(condition)) { printf("line %d: not " #condition "\n", __LINE__); return 1; } } while (0)

int main(void)
{
    const int before = perfmon_getNumberOfGroups(); /* the markers have not begun: liblikwid's own answer */
    double events[10], seconds;
    int event_count = 10, calls;

    LIKWID_MARKER_INIT;
    LIKWID_MARKER_REGISTER("of a group");
    for (int group = 0; group < perfmon_getNumberOfGroups(); group++) {
        const int active = perfmon_getIdOfActiveGroup();
        LIKWID_MARKER_START("of a group");
        LIKWID_MARKER_STOP("of a group");
        LIKWID_MARKER_GET("of a group", &event_count, events, &seconds, &calls);
        for (int i = 0; i < event_count; i++)
            puts(perfmon_getEventName(active, i));
        SAYS(perfmon_getNumberOfEvents(active) == event_count && perfmon_getNumberOfMetrics(active) == 0);
        SAYS(strlen(perfmon_getGroupName(active)) && strlen(perfmon_getGroupInfoShort(active)) &&
             strlen(perfmon_getGroupInfoLong(active)));
        SAYS(perfmon_getNumberOfEvents(active + 1) < 0 && !perfmon_getGroupName(-1));
        LIKWID_MARKER_SWITCH;
    }
    LIKWID_MARKER_CLOSE;
    if (getenv("LD_PRELOAD")) {
        SAYS(before < 0);
        SAYS(perfmon_getNumberOfRegions() == 0 && perfmon_getNumberOfThreads() == 0);
    }
    puts("done");
    return 0;
}
