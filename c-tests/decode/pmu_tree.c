/* The tree of metrics on real counters: each node's truth lies within its interval, on P-cores and E-cores, and the nodes are
 * what td_decode_l1 and td_decode_l2 say. */
#include "pmu.h"
#include "tree.h"

/* Regions of several lengths, with context switches in between, in each mix. */
static void measure(td_t *td)
{
    static const uint64_t LENGTHS[] = {3000, 50000, 1000000, 3000000};
    const uint32_t level = info_of(td).level;
    struct td_sample before, after;
    nodes_are_listed(td, level);
    needs_known_mix();
    for (int k = 0; k < 4; k++) {
        const struct truth truth = truth_of(MIXES[k]);
        double all[NODES_IN_ALL];
        memcpy(all, truth.l1, sizeof truth.l1);
        memcpy(all + 4, truth.l2, sizeof truth.l2);
        mix_is(MIXES[k]);
        for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
            td_must(td_read(td, &before));
            work(LENGTHS[i]);
            if (i % 2)
                usleep(1000);
            td_must(td_read(td, &after));
            tree_is(&before, &after, all, level);
        }
        td_must(td_reset(td));
        work(1000000);
        td_must(td_read(td, &after));
        tree_is(NULL, &after, all, level);
    }
}

int main(void)
{
    struct td_options options = options_of(0, 0);
    const int e = e_core();
    td_t *td = measured(&options);
    measure(td);
    td_close(td);
    options.flags = TD_FLAG_NO_RDPMC;
    options.level = 1;
    td = measured(&options);
    measure(td);
    td_close(td);
    if (e >= 0) {
        move_to(0, e);
        struct td_node nodes[NODES_IN_ALL];
        uint32_t count = 0;
        options = options_of(TD_FLAG_E_CORES, 1);
        td = measured(&options);
        td_must(td_list_nodes(td, nodes, NODES_IN_ALL, &count)); /* hybrid/pmu_e_core.c measures them */
        CHECK_EQ(count, 10);
        for (uint32_t k = 0; k < count; k++)
            CHECK_EQ(nodes[k].measured, nodes[k].level == 1);
        td_close(td);
    }
    return 0;
}
