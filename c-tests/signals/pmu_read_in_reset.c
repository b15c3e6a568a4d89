/* A signal handler that calls td_read in the middle of a td_reset: what is read after the reset is of the new period, whatever the
 * handler saw. */
#include "pmu.h"
#include "strike.h"

enum { TURNS = 6000 };
static td_t *td;
static struct td_sample seen;
static volatile sig_atomic_t code;

static void handler(int unused)
{
    (void)unused;
    struck = stage;
    code = td_read(td, &seen);
}

int main(int argc, char **argv)
{
    struct td_sample before, later;
    struct td_l1 l1;
    uint64_t seed = seed_of(argc, argv);
    int within = 0;
    td = measured(NULL);
    needs_known_mix();
    const double width = info_of(td).slots_per_cycle;
    printf("seed %llu\n", (unsigned long long)seed);
    on_signal(handler);
    for (int i = 0; i < TURNS; i++) {
        td_must(td_read(td, &before));
        take_aim();
        const double done = (double)lead * width; /* slots of the work before the reset; next time's may be another */
        td_must(td_reset(td));
        if (!was_struck(&seed))
            continue;
        within++;
        td_must(code);
        td_must(td_read(td, &later));
        CHECK_EQ(td_decode_l1(&before, &later, &l1), TD_ESTALE);
        CHECK((double)later.slots < done);
    }
    td_close(td);
    printf("%d handlers in %d resets\n", within, TURNS);
    CHECK(within > TURNS / 20);
    return 0;
}
