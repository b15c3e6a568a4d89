/* Which source td_open chooses by default: general counters, while nobody else needs them; registers, with a note that says why,
 * while another group of this thread holds them; counters again when it has gone. A handle that was opened before shares them by
 * time: its regions are within `error`, and `running` says which part was counted.
 * needs: counters */
#include "competing.h"

enum { RIVALS = 8, TIMES = 60, REGIONS = 40, LENGTH = 1000000 };

/* A group of general counters, of which there are too few beside it. */
static struct perf_group rival_group(void)
{
    struct perf_group group = {{0}, 0};
    for (uint64_t k = 0; k < RIVALS; k++) /* some event or other */
        add_event(&group, in_user_mode(event_of(PERF_TYPE_RAW, 0xc4 | k << 8)), 0, -1, k == 0 ? -1 : group.fd[0]);
    CHECK_EQ(ioctl(group.fd[0], PERF_EVENT_IOC_ENABLE, 0), 0);
    return group;
}

static struct td_options options; /* of the deepest level that general counters give here */

/* What a handle takes that leaves it to the library, and how its regions are. */
static void chosen(int counters, const char *note)
{
    td_t *td;
    td_must(td_open(&td, &options));
    const struct td_info info = info_of(td);
    if ((info.counters > 0) != counters || strstr(info.note, note) == NULL || (info.note[0] != 0) != (note[0] != 0))
        FAIL("%u general counters are taken, with the note '%s'", info.counters, info.note);
    CHECK_EQ(info.path, TD_PATH_RDPMC);
    CHECK(regions(td, 4, LENGTH / 10).running > 0);
    td_close(td);
}

int main(void)
{
    td_t *before;
    needs_known_mix();
    stay_on_a_cpu();
    before = counted();
    options = options_of(0, info_of(before).level);
    td_close(before);
    chosen(1, "");

    struct perf_group rival = rival_group();
    for (int i = 0; i < TIMES; i++) { /* at any moment of their turns */
        chosen(0, "others");
        work(100000 * (uint64_t)i);
    }
    group_ends(&rival);

    td_must(td_open(&before, &options));
    CHECK(regions(before, 4, LENGTH).running == 1);
    rival = rival_group();
    const struct td_l1 shared = regions(before, REGIONS, LENGTH);
    printf("beside another group: running %f, error %f\n", shared.running, shared.error);
    CHECK(shared.running > 0.1 && shared.running < 0.9);
    group_ends(&rival);

    regions(before, 8, LENGTH); /* in which the kernel puts it on the counters again */
    CHECK(regions(before, 4, LENGTH).running == 1);
    td_close(before); /* it was another, too */
    chosen(1, "");
    return 0;
}
