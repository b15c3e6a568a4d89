/* Retire latencies of a program whose short threads wait longer than its main one: they end before an event has had its period, so that no
 * sample shows it, and the interval has what they may have waited. Arguments: the seed.
 * needs: counters, explore */
#include "lib/stat.h"
#include "vm/mix.h"
#include <math.h>
#include <pthread.h>

enum { EVENT = 0x2d1, PER_65536 = 4096, SHORT_LATENCY = 2, LONG_LATENCY = 100, MAIN_PIECE = 100000, THREADS = 1500 };

static const struct vm_mix MAIN_MIX = {24, 8, 12, 6, 9, 10, 9}, THREAD_MIX = {20, 10, 14, 6, 9, 10, 9};

static void latency_is(struct vm_mix mix, uint64_t latency)
{
    vm_mix_set(mix, 0, 0, 0);
    vm_rates_clear();
    CHECK(vm_rate_set(EVENT, PER_65536, VM_PER_CYCLE) && vm_latency_set(EVENT, 100 * latency, 0));
}

static void *short_thread(void *instructions)
{
    vm_mix_set(THREAD_MIX, 0, 0, 0);
    work(*(const uint64_t *)instructions);
    return NULL;
}

/* The main thread's pieces, and threads of so many instructions in between. */
static void program(uint64_t instructions)
{
    latency_is(THREAD_MIX, LONG_LATENCY);
    latency_is(MAIN_MIX, SHORT_LATENCY);
    for (int k = 0; k < THREADS; k++) {
        pthread_t thread;
        work(MAIN_PIECE);
        if (instructions) {
            CHECK_EQ(pthread_create(&thread, NULL, short_thread, &instructions), 0);
            CHECK_EQ(pthread_join(thread, NULL), 0);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        program(strtoull(argv[2], NULL, 0));
        return 0;
    }
    uint64_t random = seed_of(argc, argv);
    stat_begins();
    /* (with none, and with some that have about one sample, or none) */
    for (int round = 0; round < 3; round++) {
        char instructions[32];
        double value, low, high = INFINITY;
        const uint64_t length = round ? 10000 + next_random(&random) % 60000 : 0;
        snprintf(instructions, sizeof instructions, "%llu", (unsigned long long)length);
        char *const command[] = {beside("../release/topdown"), strdup("stat"), strdup("--metrics"), strdup("MEM_LOAD_RETIRED.L2_HIT:R"),
                                 strdup("-o"), in_scratch("r.json"), strdup(own_path()), strdup("work"), instructions, NULL};
        if (run_alone(command) != 0) {
            if (strstr(stat_said(), "is no companion figure") || strstr(stat_said(), "P-cores alone"))
                SKIP("this CPU has no retire latencies, or two kinds of core");
            FAIL("%s", stat_said());
        }
        static char report[1 << 20];
        FILE *file = fopen(in_scratch("r.json"), "r");
        CHECK(file != NULL);
        report[fread(report, 1, sizeof report - 1, file)] = 0;
        fclose(file);
        const char *figure = strstr(report, "\"name\": \"MEM_LOAD_RETIRED.L2_HIT:R\"");
        CHECK(figure != NULL);
        if (strstr(figure, "samples have no retire latency"))
            SKIP("this kernel's samples have none");
        CHECK_EQ(sscanf(strstr(figure, "\"value\": "), "\"value\": %lf", &value), 1);
        CHECK_EQ(sscanf(strstr(figure, "\"low\": "), "\"low\": %lf", &low), 1);
        sscanf(strstr(figure, "\"high\": "), "\"high\": %lf", &high);
        const double truth = (SHORT_LATENCY * (double)MAIN_PIECE + LONG_LATENCY * (double)length) / (double)(MAIN_PIECE + length);
        fprintf(stderr, "threads of %s: %.2f, %.2f to %.2f, truth %.2f\n", instructions, value, low, high, truth);
        CHECK(low <= truth && truth <= high);
        CHECK(length > 0 || high < 2 * SHORT_LATENCY); /* (what is sampled whole is told) */
    }
    return 0;
}
