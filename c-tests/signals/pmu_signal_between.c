/* A signal handler with another mix than the program's runs in the middle of a td_read, between its two registers, too:
 * the reading has all of the handler's slots or none, and the truth is within `error`. */
#include "pmu.h"
#include "strike.h"

enum { TURNS = 20000, INSTRUCTIONS = 30000 };

static void handler(int unused)
{
    (void)unused;
    struck = stage;
    mix_is(MIXES[2]);
    work(INSTRUCTIONS);
    mix_is(MIXES[0]);
}

int main(int argc, char **argv)
{
    struct td_sample before, after;
    struct td_l1 l1;
    uint64_t seed = seed_of(argc, argv);
    int within = 0, with_handler = 0, telling = 0;
    td_t *td = measured(NULL);
    needs_known_mix();
    const struct truth program = truth_of(MIXES[0]), handlers = truth_of(MIXES[2]);
    const double width = info_of(td).slots_per_cycle, of_handler = INSTRUCTIONS * width;
    printf("seed %llu\n", (unsigned long long)seed);
    on_signal(handler);
    mix_is(MIXES[0]);
    for (int i = 0; i < TURNS; i++) {
        double share[4];
        td_must(td_reset(td));
        td_must(td_read(td, &before));
        take_aim();
        const double done = (double)lead * width; /* slots of the work before the reading; next time's may be another */
        td_must(td_read(td, &after));
        if (!was_struck(&seed))
            continue;
        td_must(td_decode_l1(&before, &after, &l1));
        const int has_handler = (double)l1.slots >= done + of_handler;
        const double part = has_handler ? of_handler / (double)l1.slots : 0;
        const double ends = 100 * width / (double)l1.slots; /* the handler's entry and exit */
        CHECK((double)l1.slots < 2 * done + (has_handler ? of_handler : 0));
        l1_array(&l1, share);
        for (int k = 0; k < 4; k++)
            CHECK_NEAR(share[k], part * handlers.l1[k] + (1 - part) * program.l1[k], l1.error + ends);
        within++;
        with_handler += has_handler;
        telling += l1.error < 0.1;
    }
    td_close(td);
    printf("%d handlers in %d readings, %d of which have its slots, %d telling\n", within, TURNS, with_handler, telling);
    CHECK(within > TURNS / 10);
    CHECK(with_handler > 0 && with_handler < within);
    CHECK(telling > within / 2);
    return 0;
}
