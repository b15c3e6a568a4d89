/* The calls that LIKWID's own example C-markerAPI.c makes, in the same order: threads of OpenMP register a region and execute it
 * once for each group of events, ask what it was, and switch groups. */
#include <likwid.h>
#include <omp.h>
#include <stdio.h>
#include <time.h>
#include <stdlib.h>

static int wrong;

#define SAYS(condition) do { if (!(condition)) { printf("line %d: not " #condition "\n", __LINE__); wrong = 1; } } while (0)

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(void)
{
    const int is_measured = getenv("LD_PRELOAD") != NULL;
    int groups = 0;

    LIKWID_MARKER_INIT;
#pragma omp parallel
    {
        LIKWID_MARKER_THREADINIT;
        LIKWID_MARKER_REGISTER("example");
    }
    for (int group = 0; group < perfmon_getNumberOfGroups(); group++) {
        groups++;
#pragma omp parallel
        {
            double values[10], seconds = -1;
            int events = 10, calls = -1;

            LIKWID_MARKER_START("example");
            for (volatile int i = 0; i < 1000 * (1 + omp_get_thread_num()); i++)
                ;
            LIKWID_MARKER_STOP("example");
            LIKWID_MARKER_GET("example", &events, values, &seconds, &calls);
#pragma omp critical
            {
                SAYS(events == 0 && calls == 1 && seconds > 0); /* each thread's own */
                for (int i = 0; i < events; i++)
                    printf("%s, %s: %f\n", perfmon_getEventName(group, i), perfmon_getCounterName(group, i), values[i]);
                SAYS(perfmon_getNumberOfEvents(group) == 0 && !perfmon_getEventName(group, 0));
                SAYS(!perfmon_getCounterName(group, 0) && !perfmon_getMetricName(group, 0));
            }
            LIKWID_MARKER_SWITCH;
        }
    }
    if (is_measured) {
        double values[1], first = 0, seconds = 0;
        int events = 1, calls = 0;

        SAYS(groups == 1);
        LIKWID_MARKER_GET("never started", &events, values, &seconds, &calls);
        SAYS(calls == 0 && seconds == 0);
        for (int turn = 0; turn < 3; turn++) { /* also within another region, and not counted twice within itself */
            LIKWID_MARKER_START(turn ? "around" : "alone");
            LIKWID_MARKER_START("asked for");
            for (const double begun = now(); now() < begun + 1e-3;)
                ;
            LIKWID_MARKER_STOP("asked for");
            LIKWID_MARKER_STOP(turn ? "around" : "alone");
        }
        LIKWID_MARKER_GET("asked for", &events, values, &first, &calls);
        SAYS(calls == 3 && first > 0);
        LIKWID_MARKER_RESET("asked for");
        LIKWID_MARKER_GET("asked for", &events, values, &seconds, &calls);
        SAYS(calls == 0 && seconds == 0);
        const double begun = now();
        LIKWID_MARKER_START("asked for");
        LIKWID_MARKER_STOP("asked for");
        const double elapsed = now() - begun;
        LIKWID_MARKER_GET("asked for", &events, values, &seconds, &calls);
        SAYS(calls == 1 && seconds > 0 && seconds <= elapsed); /* without what was before the reset */
    }
    LIKWID_MARKER_CLOSE;
    if (!wrong)
        puts("done");
    return wrong;
}
