/* A program instrumented for LIKWID, as its manual has it. */
#include <likwid-marker.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *other(void *unused)
{
    (void)unused;
    LIKWID_MARKER_THREADINIT;
    LIKWID_MARKER_START("thread");
    LIKWID_MARKER_STOP("thread");
    return NULL;
}

int main(void)
{
    char tag[32];
    double events[4] = { 7, 7, 7, 7 }, seconds = 7;
    int event_count = 4, calls = 7;
    pthread_t thread;

    LIKWID_MARKER_INIT;
    LIKWID_MARKER_THREADINIT;
    LIKWID_MARKER_REGISTER("outer");

    for (int i = 0; i < 3; i++) {
        LIKWID_MARKER_START("outer");
        LIKWID_MARKER_START("inner");
        LIKWID_MARKER_STOP("inner");
        LIKWID_MARKER_STOP("outer");
    }

    LIKWID_MARKER_START("first");            /* they overlap: the second one comes in two pieces */
    LIKWID_MARKER_START("second");
    LIKWID_MARKER_STOP("first");
    LIKWID_MARKER_STOP("second");

    LIKWID_MARKER_START("anew");             /* which LIKWID warns of: only the later start counts */
    LIKWID_MARKER_START("within");
    LIKWID_MARKER_START("anew");
    LIKWID_MARKER_STOP("anew");
    LIKWID_MARKER_STOP("within");

    for (int i = 0; i < 2; i++) {            /* the text tells regions apart, not where it is */
        snprintf(tag, sizeof tag, "step %d", i);
        LIKWID_MARKER_START(tag);
        snprintf(tag, sizeof tag, "other");
        LIKWID_MARKER_START("in a step");
        snprintf(tag, sizeof tag, "step %d", i);
        LIKWID_MARKER_STOP(tag);
        LIKWID_MARKER_STOP("in a step");
    }
    for (int i = 0; i < 100; i++) {          /* more than can be open at once: the rest is not measured */
        snprintf(tag, sizeof tag, "deep %d", i);
        LIKWID_MARKER_START(tag);
    }
    for (int i = 99; i >= 0; i--) {
        snprintf(tag, sizeof tag, "deep %d", i);
        LIKWID_MARKER_STOP(tag);
    }
    LIKWID_MARKER_STOP("never started");

    if (pthread_create(&thread, NULL, other, NULL) || pthread_join(thread, NULL))
        return 1;

    LIKWID_MARKER_SWITCH;
    LIKWID_MARKER_GET("outer", &event_count, events, &seconds, &calls);
    LIKWID_MARKER_CLOSE;
    if (getenv("LD_PRELOAD") && (event_count || seconds <= 0 || calls != 3 || events[0] != 7)) {
        puts("GET has events of a LIKWID that does not run, or not the region's executions");
        return 1;
    }
    puts("done");
    return 0;
}
