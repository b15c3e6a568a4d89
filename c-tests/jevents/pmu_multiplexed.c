/* More events of a process than there are counters: each is counted some of the time, and scaled it is what the process
 * did, though that moves between CPUs. */
#include "counters.h"
#include <inttypes.h>
#include <jsession.h>
#include <sched.h>
#include <sys/wait.h>

enum { EVENTS = 24, MOVES = 8, TURN = 50000000 };

static int moves(void)
{
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < MOVES; i++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(i % (cpus < 2 ? cpus : 2), &one); /* on a hybrid CPU these are P-cores */
        CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        work(TURN);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct eventlist *el = alloc_eventlist();
    int go[2], shared = 0;
    char byte = 0;
    if (argc > 1)
        return moves();
    needs_known_counts();
    CHECK(el != NULL);
    for (int i = 0; i < EVENTS; i++)
        CHECK_EQ(parse_events(el, "r00c0:u"), 0); /* no fixed counter */
    CHECK_EQ(pipe(go), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) == 1)
            execl(argv[0], argv[0], "moves", (char *)NULL);
        _exit(1);
    }
    CHECK_EQ(setup_events(el, false, child), 0);
    CHECK_EQ(write(go[1], "x", 1), 1);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(read_all_events(el), 0);
    for (struct event *e = el->eventlist; e != NULL; e = e->next) {
        uint64_t scaled = 0, counted = 0;
        for (int cpu = 0; cpu < el->num_cpus; cpu++) {
            scaled += event_scaled_value(e, cpu);
            counted += e->efd[cpu].val[0];
        }
        shared += counted < scaled;
        const double error = (double)scaled / ((double)MOVES * TURN) - 1;
        if (error < -0.05 || error > 0.05)
            FAIL("%" PRIu64 " instructions, scaled from %" PRIu64 ", of %d", scaled, counted, MOVES * TURN);
    }
    CHECK(shared > EVENTS / 2);
    free_eventlist(el);
    return 0;
}
