/* pmu_killed [MOMENTS [SEED]]: a program with threads and children that is killed (SIGKILL) at random moments is counted to the end, by
 * `topdown run` and `topdown stat`: slots within 1 % of the truth, which the program has kept in a file, and shares within their bound.
 * needs: counters */
#include "lib/stat.h"
#include <sys/mman.h>
#include <time.h>

static struct tally *tally;

static uint64_t turns(void)
{
    uint64_t all = 0;
    for (int k = 0; k < TALLIES; k++)
        all += tally->turns[k];
    return all;
}

static int has_begun(void)
{
    for (int k = 0; k < TALLIES; k++)
        if (tally->turns[k] == 0)
            return 0;
    return 1;
}

/* In a process of its own: kills the program, so long after all of its threads have begun. */
static pid_t killer(unsigned microseconds)
{
    const pid_t child = fork();
    if (child == 0) {
        for (int k = 0; k < 100000 && !has_begun(); k++)
            usleep(200); /* (a file tells nobody) */
        CHECK(has_begun());
        usleep(microseconds);
        _exit(kill(-tally->group, SIGKILL) != 0);
    }
    return child;
}

/* Slots of a run that is killed then; in `truth`, those of its turns. */
static double killed_slots(const char *subcommand, unsigned microseconds, double width, double *truth)
{
    static struct csv csv;
    char *const shape[] = {beside("lib/shapes"), strdup("tallies"), in_scratch("tally"), NULL};
    memset(tally, 0, sizeof *tally);
    const pid_t child = killer(microseconds);
    int status = run_under(subcommand, "", shape);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    *truth = turns() * width * TURN;
    csv_read(&csv, in_scratch("r.csv"));
    const int row = csv_row(&csv, "");
    const double slots = csv_number(&csv, row, "slots");
    if (slots < *truth)
        FAIL("%s, killed after %u us: %.0f slots, and %.0f in its turns alone", subcommand, microseconds, slots, *truth);
    /* (a process that is killed in an exec cannot be told from one that lost its events there: its time is in the bound) */
    const double running = csv_number(&csv, row, "running");
    CHECK(running <= 1 && (1 - running) / 2 <= csv_number(&csv, row, "error_1") + 1e-9); /* a share is off by half of what may be, or more */
    stat_is_true(&csv, (slots - *truth) / slots); /* (before main it divides otherwise) */
    free(csv.text);
    CHECK_EQ(unlink(in_scratch("r.csv")), 0);
    return slots;
}

int main(int argc, char **argv)
{
    static const char *const SUBCOMMANDS[] = {"run", "stat"};
    const int moments = argc > 1 ? atoi(argv[1]) : 6;
    const unsigned seed_given = (unsigned)seed_of(argc - 1, argv + 1);
    unsigned seed = seed_given;
    stat_begins();
    const double width = unit_slots(TD_FLAG_REGISTERS) / UNIT;
    const int file = open(in_scratch("tally"), O_CREAT | O_RDWR, 0666);
    CHECK(fchmod(file, 0666) == 0 && ftruncate(file, sizeof *tally) == 0);
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(tally != MAP_FAILED);
    double truth, before[2], worst = 0;
    for (int k = 0; k < 2; k++) { /* what it executes besides its turns, all of it before them */
        before[k] = killed_slots(SUBCOMMANDS[k], 0, width, &truth);
        before[k] -= truth;
    }
    for (int k = 0; k < moments; k++) {
        const unsigned microseconds = 2000 + rand_r(&seed) % 15000;
        const double slots = killed_slots(SUBCOMMANDS[k % 2], microseconds, width, &truth);
        const double off = (slots - before[k % 2]) / truth - 1;
        fprintf(stderr, "%s, killed after %u us: %.0f slots, %+.4f %% from the truth\n", SUBCOMMANDS[k % 2], microseconds, slots, 100 * off);
        CHECK_NEAR(off, 0, 0.01);
        worst = fmax(worst, fabs(off));
    }
    printf("seed %u, %d moments: within %.3f %% of the truth (before the turns: %.0f slots, %.0f)\n", seed_given, moments, 100 * worst, before[0], before[1]);
    return 0;
}
