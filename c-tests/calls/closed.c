/* A closed handle says so: its memory stays readable, so that a stale pointer meets -EBADF and not a fault. */
#include "check.h"

/* so it says for a while even if others are opened and closed meanwhile: a closed handle rests for 16 further closes */
static void rests(void)
{
    struct td_sample sample;
    struct td_info info;
    enum { RESTING = 16 };
    td_t *stale = simulated(0), *other[RESTING];
    td_close(stale);
    for (int i = 0; i < RESTING; i++) {
        td_t *next = simulated(0);
        CHECK(next != stale);
        CHECK_EQ(td_read(stale, &sample), -EBADF);
        td_close(next);
        CHECK_EQ(td_read(stale, &sample), -EBADF);
        CHECK_EQ(td_reset(stale), -EBADF);
        CHECK_EQ(td_get_info(stale, &info), -EBADF);
    }
    stale = simulated(0);
    for (int i = 0; i < RESTING; i++)
        other[i] = simulated(0);
    td_close(stale);
    for (int i = 0; i < RESTING; i++) {
        td_close(other[i]);
        CHECK_EQ(td_read(stale, &sample), -EBADF);
    }
}

int main(void)
{
    rests();
    struct td_sample sample, kept;
    struct td_info info;
    struct td_l1 l1;
    enum { COUNT = 100 };
    td_t *td[2 * COUNT];
    for (int i = 0; i < COUNT; i++)
        td[i] = simulated(0);
    work(1000);
    td_must(td_read(td[0], &kept));
    for (int i = 0; i < COUNT; i++)
        td_close(td[i]);
    for (int i = 0; i < COUNT; i++) {
        memset(&sample, 0x55, sizeof sample);
        CHECK_EQ(td_read(td[i], &sample), -EBADF);
        CHECK_EQ(sample.size, 0x55555555);
        CHECK_EQ(td_reset(td[i]), -EBADF);
        CHECK_EQ(td_get_info(td[i], &info), -EBADF);
        td_close(td[i]); /* again: nothing to end */
    }
    /* closing twice gave no handle away twice */
    for (int i = 0; i < 2 * COUNT; i++) {
        td[i] = simulated(0);
        for (int j = 0; j < i; j++)
            CHECK(td[j] != td[i]);
    }
    for (int i = 0; i < 2 * COUNT; i++)
        td_close(td[i]);
    td_must(td_decode_l1(NULL, &kept, &l1));
    rests(); /* with many at rest as well */
    return 0;
}
