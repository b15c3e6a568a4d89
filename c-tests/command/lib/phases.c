/* phases NAME FILE: a program of PHASED. Calls functions in random order, each with another mix in each phase, and writes the cycles of each function
 * in each phase, in the order of phases. */
#include "phases.h"
#include "work.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const struct phased_program *program;
static double cycles[3][MOST_PHASES][OF_PHASE];

static void run_phase(const struct phase *phase, unsigned number, uint64_t *seed, double *sums)
{
    unsigned calls_since = 0;
    for (uint64_t done = 0; done < phase->millions * 1000000ull;) {
        const unsigned k = (unsigned)(random_part(seed) * OF_PHASE);
        const uint64_t turns = (uint64_t)(30000 * (0.2 + 1.6 * random_part(seed))) / 2 + 1;
        runs_as(in_phase(k, number));
        table[k](turns);
        sums[k] += clocked(in_phase(k, number), 2 * turns);
        done += 2 * turns;
        if (phase->calls > 0 && ++calls_since % phase->calls == 0)
            usleep(phase->sleep_us);
    }
}

static void *run(void *number)
{
    const unsigned thread = *(unsigned *)number;
    uint64_t seed = 88172645463325252u + 977u * thread;
    for (unsigned k = 0; k < program->repeated * program->phases; k++) {
        const unsigned phase = (k + thread) % program->phases;
        run_phase(&program->phase[phase], phase, &seed, cycles[thread][phase]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    (void)work; /* (its functions are called, and not by it) */
    unsigned numbers[3] = {0, 1, 2};
    pthread_t thread[3];
    FILE *file;
    for (unsigned k = 0; argc == 3 && k < sizeof PHASED / sizeof *PHASED; k++)
        if (strcmp(PHASED[k].name, argv[1]) == 0)
            program = &PHASED[k];
    if (program == NULL || (file = fopen(argv[2], "w")) == NULL)
        return 2;
    for (unsigned k = 1; k < program->threads; k++)
        if (pthread_create(&thread[k], NULL, run, &numbers[k]))
            return 2;
    run(&numbers[0]);
    for (unsigned k = 1; k < program->threads; k++)
        pthread_join(thread[k], NULL);
    for (unsigned phase = 0; phase < program->phases; phase++)
        for (unsigned k = 0; k < OF_PHASE; k++)
            fprintf(file, "%.0f\n", cycles[0][phase][k] + cycles[1][phase][k] + cycles[2][phase][k]);
    return fclose(file) != 0;
}
