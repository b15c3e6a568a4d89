/* AMD's level 1 where others hold two of six general counters, as the NMI watchdog and an event of a CPU do: each core runs one thread, so
 * nothing is lost to another, and four counters tell all. td_open takes them, and says so;
 * each region is within its bound. Where SMT is on td_open says what remedies that.
 * needs: other-core */
#include "competing.h"

enum { REGION = 2000000, LEFT = 4, ALL = 6 };
static int cpu;

static int watchdog_is_on(void)
{
    int on = 0;
    FILE *const file = fopen("/proc/sys/kernel/nmi_watchdog", "r");
    CHECK(file != NULL && fscanf(file, "%d", &on) == 1 && fclose(file) == 0);
    return on;
}

/* All but so many counters, on this CPU. */
static struct perf_group others(int left)
{
    struct perf_group group = {{0}, 0};
    for (int n = ALL - left - watchdog_is_on(); n > 0; n--)
        add_event(&group, pinned_event(0xc2), -1, cpu, -1); /* branches */
    group_runs(&group);
    return group;
}

static void takes_fewer(td_t *td, uint32_t counters)
{
    const struct td_info info = info_of(td);
    printf("%s: %u counters\n", info.core, info.counters);
    CHECK(strstr(info.core, ", fewer counters") != NULL);
    CHECK_EQ(info.counters, counters);
    CHECK_EQ(info.level, 1);
}

static void counts_all(td_t *td, int count)
{
    const struct td_l1 l1 = regions(td, count, REGION);
    printf("running %.3f, error %.4f\n", l1.running, l1.error);
    CHECK_NEAR(l1.running, 1, 0.01);
    CHECK(l1.error < 0.01);
}

int main(void)
{
    cpu = stay_on_a_cpu();
    td_t *td = measured(NULL);
    const struct td_info info = info_of(td);
    td_close(td);
    if (strstr(info.core, "Zen") == NULL)
        SKIP("no core whose threads share slots by count");
    needs_known_mix();
    struct perf_group group = others(LEFT);
    if (smt_is_on()) {
        CHECK_EQ(td_open(&td, NULL), TD_ENOTCOUNTING);
        CHECK(last_error_with("smt/control"));
        return 0;
    }
    td = measured(NULL);
    takes_fewer(td, LEFT);
    counts_all(td, 8);
    td_close(td);
    group_ends(&group);
    group = others(LEFT - 1);
    CHECK_EQ(td_open(&td, NULL), TD_ENOTCOUNTING);
    group_ends(&group);
    return 0;
}
