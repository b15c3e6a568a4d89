/* What general counters cost where nothing but them is read, in instructions: a reading, one that is inlined, an execution of a sum, and
 * what decodes them. On every core the same is asked for, whether slots lead the group or cycles.
 * needs: counters or general-counters or other-core */
#include "cost.h"
#include <topdown_inline.h>

/* With the call. Each counter costs something, and so does of level 1 a fifth share, and of what decodes a tree each node. */
enum { MOST_READ = 46, A_COUNTER_READ = 6, MOST_MARK = 30, A_COUNTER_MARKED = 5, MOST_SUM = 165, A_COUNTER_SUMMED = 17 };
enum { MOST_L1 = 400, A_FIFTH = 50, MOST_L2 = 600, MOST_TREE = 750, A_NODE = 120, A_RATIO = 200 };

static td_t *td;
static struct td_sample before, after, sample;
static struct td_mark mark;
static struct td_sum sum;
static struct td_l1 l1;
static struct td_l2 l2;
static struct td_node nodes[64];
static uint32_t count;

static __attribute__((noinline)) void reading(void) { td_read(td, &sample); }
static __attribute__((noinline)) void marking(void) { td_read_mark(td, &mark); }
static __attribute__((noinline)) void level_1(void) { td_decode_l1(&before, &after, &l1); }
static __attribute__((noinline)) void level_2(void) { td_decode_l2(&before, &after, &l2); }
static __attribute__((noinline)) void tree(void) { td_decode_tree(&before, &after, nodes, 64, &count); }
static __attribute__((noinline)) void execution(void)
{
    td_sum_begin(td, &sum);
    td_sum_end(td, &sum);
}

/* Whether the nodes of level 2 are those of td_l2. */
static int has_nodes_of_l2(void)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < count; k++)
        found += nodes[k].measured && nodes[k].id >= TD_NODE_HEAVY_OPERATIONS && nodes[k].id <= TD_NODE_CORE_BOUND;
    return found == 8;
}

int main(void)
{
    struct td_info info;
    td = counted();
    needs_known_mix(); /* where the time-stamp counter counts instructions */
    td_must(td_get_info(td, &info));
    td_must(td_read(td, &before));
    work(100000);
    td_must(td_read(td, &after));
    marking(); /* (at one place alone, so that the compiler inlines it) */
    td_must(td_sum_begin(td, &sum));
    td_must(td_sum_end(td, &sum));
    costs("td_read", reading, MOST_READ + A_COUNTER_READ * info.counters);
    costs("td_read_mark", marking, MOST_MARK + A_COUNTER_MARKED * info.counters);
    costs("td_sum_begin and td_sum_end", execution, MOST_SUM + A_COUNTER_SUMMED * info.counters);
    CHECK(sum.executions > 1 && sum.measured == sum.executions);
    td_must(td_decode_l1(&before, &after, &l1));
    td_must(td_decode_tree(&before, &after, nodes, 64, &count));
    const int has_fifth = count > 4 && nodes[4].level == 1;
    costs("td_decode_l1", level_1, MOST_L1 + (has_fifth ? A_FIFTH : 0));
    CHECK_EQ(td_decode_l2(&before, &after, &l2), has_nodes_of_l2() ? 0 : -ENOTSUP);
    if (has_nodes_of_l2())
        costs("td_decode_l2", level_2, MOST_L2);
    /* (twelve nodes, and not those of td_l2: Skylake's, one of which is a ratio of counts) */
    const int has_ratio = count == 12 && !has_nodes_of_l2();
    costs("td_decode_tree", tree, MOST_TREE + A_NODE * count + (has_ratio ? A_RATIO : 0));
    td_close(td);
    return 0;
}
