/* Sums on the simulated PMU: executions add up, bad calls are told and lose nothing, an end without a begin is counted. */
#include "tree.h"

/* The nodes of a sum are what its levels say, within their bound. */
static void tree_of_sum(const struct td_sum *sum)
{
    struct td_node nodes[NODES_IN_ALL];
    struct td_l1 l1;
    struct td_l2 l2;
    double share[NODES_IN_ALL];
    uint32_t count;
    td_must(td_sum_decode_tree(sum, nodes, NODES_IN_ALL, &count));
    CHECK_EQ(count, NODES_IN_ALL);
    td_must(td_sum_l1(sum, &l1));
    td_must(td_sum_l2(sum, &l2));
    l1_array(&l1, share);
    l2_array(&l2, share + 4);
    for (uint32_t k = 0; k < count; k++) {
        const double error = (k < 4 ? l1.error : l2.error) + 1e-9;
        node_is(&nodes[k], k, 1);
        CHECK(nodes[k].value == share[k]);
        CHECK_EQ(nodes[k].whole, sum->slots);
        CHECK(nodes[k].value - nodes[k].low <= error && nodes[k].high - nodes[k].value <= error);
    }
}

int main(void)
{
    td_t *td = simulated(2);
    struct td_sum sum, copy;
    struct td_sample a, b;
    struct td_l1 l1;
    struct td_l2 l2;
    uint64_t slots = 0;
    memset(&sum, 0, sizeof sum);
    CHECK_EQ(td_sum_l1(&sum, &l1), TD_ENOTCOUNTING);
    for (int i = 0; i < 50; i++) {
        td_must(td_read(td, &a));
        work(10000);
        td_must(td_read(td, &b));
        td_must(td_sum_add(&sum, &a, &b));
        slots += b.slots - a.slots;
    }
    CHECK_EQ(sum.executions, 50);
    CHECK_EQ(sum.measured, 50);
    CHECK_EQ(sum.slots, slots);
    td_must(td_sum_l1(&sum, &l1));
    td_must(td_sum_l2(&sum, &l2));
    CHECK_EQ(l1.slots, slots);
    CHECK_EQ(l1.flags, TD_SAMPLE_SIMULATED);
    CHECK_NEAR(l1.retiring, 0.4, l1.error);
    CHECK_NEAR(l2.memory_bound, 0.2, l2.error);
    tree_of_sum(&sum);

    copy = sum;
    CHECK_EQ(td_sum_add(&sum, &b, &a), -EINVAL); /* the wrong order */
    CHECK_EQ(memcmp(&sum, &copy, sizeof sum), 0);

    memset(&sum, 0, sizeof sum);
    CHECK_EQ(td_sum_end(td, &sum), -EINVAL);
    CHECK(last_error_with("td_sum_begin"));
    CHECK_EQ(sum.unbalanced, 1);
    td_must(td_sum_begin(td, &sum));
    td_must(td_sum_begin(td, &sum)); /* anew */
    work(10000);
    td_must(td_sum_end(td, &sum));
    CHECK_EQ(td_sum_end(td, &sum), -EINVAL);
    CHECK_EQ(sum.executions, 1);
    CHECK_EQ(sum.unbalanced, 2);
    td_must(td_sum_begin(td, &sum));
    td_must(td_reset(td));
    CHECK_EQ(td_sum_end(td, &sum), TD_ESTALE);
    CHECK_EQ(sum.executions, 1);

    td_close(td);
    td = simulated(2);
    memset(&sum, 0, sizeof sum);
    td_must(td_sum_begin(td, &sum)); /* a handle that has spent nothing measures the first */
    work(10000);
    td_must(td_sum_end(td, &sum));
    CHECK_EQ(sum.measured, 1);
    td_must(td_sum_l1(&sum, &l1));
    CHECK_NEAR(l1.retiring, 0.4, l1.error);
    td_close(td);
    return 0;
}
