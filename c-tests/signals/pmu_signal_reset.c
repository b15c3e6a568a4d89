/* A signal handler that calls td_reset in the middle of a td_read: the reading is of the period before or of the new one,
 * never of both. */
#include "pmu.h"
#include "strike.h"

enum { TURNS = 20000 };
static td_t *td;
static volatile sig_atomic_t code;

static void handler(int unused)
{
    (void)unused;
    struck = stage;
    code = td_reset(td);
}

int main(int argc, char **argv)
{
    struct td_sample before, now, later;
    struct td_l1 l1;
    uint64_t seed = seed_of(argc, argv);
    int within = 0, resets = 0, fresh = 0;
    td = measured(NULL);
    needs_known_mix();
    const double width = info_of(td).slots_per_cycle;
    printf("seed %llu\n", (unsigned long long)seed);
    on_signal(handler);
    for (int i = 0; i < TURNS; i++) {
        td_must(td_reset(td));
        td_must(td_read(td, &before));
        take_aim();
        const double done = (double)lead * width; /* slots of the work before the reading; next time's may be another */
        td_must(td_read(td, &now));
        if (!was_struck(&seed))
            continue;
        within++;
        if (code == -EBUSY)
            continue;
        td_must(code);
        resets++;
        td_must(td_read(td, &later));
        CHECK_EQ(td_decode_l1(&before, &later, &l1), TD_ESTALE);
        const int decoded = td_decode_l1(&before, &now, &l1);
        if (decoded == 0) { /* of the period before: all the work is in it, once, and nothing of it in the new one */
            CHECK((double)l1.slots >= done);
            CHECK((double)l1.slots < 2 * done);
            CHECK_EQ(td_decode_l1(&now, &later, &l1), TD_ESTALE);
        } else { /* of the new one: nothing of the work is in it */
            CHECK_EQ(decoded, TD_ESTALE);
            CHECK((double)now.slots < done);
            CHECK(now.slots <= later.slots);
            CHECK(now.time_enabled_ns <= later.time_enabled_ns);
            CHECK(now.time_running_ns <= later.time_running_ns);
            fresh++;
        }
        CHECK((double)later.slots < done);
    }
    td_close(td);
    printf("%d handlers in %d readings, %d could reset; %d readings of the new period\n", within, TURNS, resets, fresh);
    CHECK(resets > TURNS / 20);
    CHECK(fresh > 0 && fresh < resets);
    return 0;
}
