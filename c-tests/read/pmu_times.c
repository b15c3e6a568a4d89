/* Times start from zero with each period, never go back nor wrap, over readings, naps, resets and beside a competing handle, and
 * a period has no more of them than the clock on the wall: whichever clock the kernel gives to user space. */
#include "pmu.h"

static uint64_t wall(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* what the clocks may be apart: they are read one after the other, and their rates are rounded */
enum { APART = 20000 };

/* A period with readings after work and naps; `competing`: another handle is opened in its middle. */
static void period(td_t *td, int naps, int competing)
{
    const struct timespec moment = {0, 300000};
    struct td_sample last, now;
    struct td_l1 l1;
    td_t *other = NULL;
    const uint64_t begun = wall();
    td_must(td_reset(td));
    const uint64_t begun_by = wall();
    td_must(td_read(td, &last));
    CHECK(last.time_running_ns <= last.time_enabled_ns);
    CHECK(last.time_enabled_ns <= wall() - begun + APART);
    for (int i = 0; i < 100; i++) {
        work(200000);
        if (naps)
            nanosleep(&moment, NULL);
        if (competing && i == 30)
            td_must(td_open(&other, NULL));
        if (competing && i == 70) {
            td_close(other);
            other = NULL;
        }
        td_must(td_read(td, &now));
        CHECK(now.time_enabled_ns >= last.time_enabled_ns);
        CHECK(now.time_running_ns >= last.time_running_ns);
        CHECK(now.time_running_ns <= now.time_enabled_ns);
        CHECK(now.time_enabled_ns <= wall() - begun + APART);
        if (td_decode_l1(&last, &now, &l1) == 0)
            CHECK(l1.running >= 0 && l1.running <= 1);
        last = now;
    }
    if (!naps && !competing && !(now.flags & TD_SAMPLE_COARSE_TIME)) {
        /* it ran, and counted, nearly all the time */
        CHECK((double)now.time_enabled_ns >= 0.5 * (double)(wall() - begun_by));
        CHECK((double)now.time_running_ns >= 0.9 * (double)now.time_enabled_ns);
    }
    if (naps || competing) /* it was scheduled since: whatever the clock, time has passed */
        CHECK(now.time_enabled_ns > 0);
}

int main(void)
{
    static const uint32_t flags[] = {0, TD_FLAG_NO_RDPMC};
    td_close(measured(NULL));
    for (int k = 0; k < 2; k++) {
        const struct td_options options = options_of(flags[k], 0);
        td_t *td = measured(&options);
        for (int i = 0; i < 4; i++) {
            period(td, 0, 0);
            period(td, 1, 0);
            period(td, 0, 1);
            period(td, 1, 1);
        }
        td_close(td);
    }
    return 0;
}
