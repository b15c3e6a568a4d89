/* A handle on a core that has general counters alone, of all levels that fit them or of a subtree, from which others take counters while
 * it is open: it goes over to level 1 by what is left, and comes back when they have gone. Each region is within its bound.
 * needs: other-core */
#include "competing.h"
#include "truth.h"

enum { REGION = 2000000, ROTATION = 5000000, MOST_OTHERS = 8 };

/* Pinned events of a CPU that leave so many general counters of all. */
static struct perf_group others_of(int cpu, uint32_t all, uint32_t leave)
{
    struct perf_group group = {{0}, 0};
    CHECK(all >= leave && all - leave <= MOST_OTHERS);
    for (uint32_t k = leave; k < all; k++)
        add_event(&group, pinned_event(0xc4), -1, cpu, -1); /* (branches: both makers have it under this number) */
    group_runs(&group);
    return group;
}

/* So many regions of random mixes; what all say together. */
static struct td_l1 of_level_1(td_t *td, int count)
{
    static uint64_t seed = 1;
    struct td_sample first, before, now;
    struct td_node nodes[32];
    struct td_l1 l1;
    double share[SHARES];
    uint32_t n = 0;
    const struct td_info info = info_of(td);
    td_must(td_read(td, &first));
    for (int k = 0; k < count; k++) {
        const struct known_mix known = random_known_mix(&seed, &info);
        shares_of_known(&known, &info, share);
        runs_at(&known);
        td_must(td_read(td, &before));
        work(REGION);
        td_must(td_read(td, &now));
        td_must(td_decode_tree(&before, &now, nodes, 32, &n));
        uint32_t deeper = 0;
        for (uint32_t node = 0; node < n; node++) {
            deeper += nodes[node].level > 1 && nodes[node].measured;
            if (nodes[node].level == 1)
                CHECK(nodes[node].low <= share[nodes[node].id] && share[nodes[node].id] <= nodes[node].high);
        }
        CHECK_EQ(deeper > 0, info.level > 1);
    }
    td_must(td_decode_l1(&first, &now, &l1));
    printf("level %u: running %.3f, error %.4f; %s\n", info.level, l1.running, l1.error, info.note);
    return l1;
}

int main(void)
{
    const int cpu = stay_on_a_cpu();
    needs_known_mix();
    watchdog_is(0); /* (which takes one of AMD's counters) */
    td_t *td = measured(NULL);
    const int amd = strstr(info_of(td).core, "Zen") != NULL;
    td_close(td);
    const uint32_t subtrees[] = {TD_NODE_NONE, amd ? TD_NODE_FRONTEND_BOUND : TD_NODE_IFETCH_LATENCY, amd ? TD_NODE_RETIRING : TD_NODE_MACHINE_CLEARS};
    int went = 0;
    for (size_t k = 0; k < sizeof subtrees / sizeof *subtrees; k++) {
        struct td_options options = {.size = sizeof options, .subtree = subtrees[k]};
        if (td_open(&td, &options)) { /* (this core has no such subtree) */
            char why[1000];
            td_last_error(why, sizeof why);
            printf("%s\n", why);
            continue;
        }
        const struct td_info info = info_of(td);
        printf("%s: %u counters, level %u\n", info.core, info.counters, info.level);
        CHECK_NEAR(of_level_1(td, 4).running, 1, 0.01);
        if (info.level > 1) {
            struct perf_group others = others_of(cpu, amd ? 6 : 8, 5);
            struct td_sample last;
            td_must(td_read(td, &last)); /* which finds that it does not count */
            const struct td_l1 beside = of_level_1(td, 20);
            CHECK(beside.running > 0.98 && beside.error < 0.02);
            CHECK(info_of(td).level == 1 && strstr(info_of(td).note, "others") != NULL);
            group_ends(&others);
            for (int turn = 0; turn < 3; turn++) { /* which find that it counts again, and has for a while */
                work(3 * ROTATION);
                td_must(td_read(td, &last));
            }
            CHECK_NEAR(of_level_1(td, 8).running, 1, 0.01);
            CHECK(info_of(td).level == info.level && strcmp(info_of(td).note, info.note) == 0);
            went++;
        }
        td_close(td);
    }
    watchdog_is(1);
    if (went == 0)
        SKIP("all that this core counts in a group is level 1");
    return 0;
}
