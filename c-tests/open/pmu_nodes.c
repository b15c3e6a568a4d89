/* Nodes that td_options names are counted in one group, and each is what its published formula says of the rates at which the program's
 * events truly happen, in single regions and in sums; their children come with them where there is room. What is no node of this CPU, or
 * has no room, is refused by its name. Arguments: the seed.
 * needs: counters */
#include "command/lib/told_nodes.h"

enum { INSTRUCTIONS = 2000000, TRIES = 40, EXECUTIONS = 20, ROUNDS = 4 };

static uint64_t seed;

static int opened(td_t **td, const uint32_t *wanted, uint32_t number, uint32_t level)
{
    struct td_options options = {.size = sizeof options, .node_count = number, .level = level};
    memcpy(options.nodes, wanted, number * sizeof *wanted);
    return td_open(td, &options);
}

/* Draws nodes that one group counts; how many. */
static uint32_t draw(uint64_t *random, uint32_t *wanted, uint32_t most)
{
    uint32_t number = 0;
    for (int tries = 0; tries < TRIES && number < most; tries++) {
        const struct text_line *line = &lines[next_random(random) % all];
        td_t *td = NULL;
        if (line->unit[0] == 0 || line->is_metric)
            continue;
        wanted[number] = td_node_id(line->name);
        int is_there = wanted[number] == TD_NODE_NONE;
        for (uint32_t k = 0; k < number; k++)
            is_there |= wanted[k] == wanted[number];
        if (is_there)
            continue;
        if (opened(&td, wanted, number + 1, 0) == 0) {
            td_close(td);
            number++;
        } else {
            CHECK(last_error_with("one group counts") || last_error_with("cannot be counted here"));
        }
    }
    return number;
}

/* Draws a node until one has a child that comes with it. */
static uint32_t draw_parent(uint64_t *random, uint32_t *wanted)
{
    for (int tries = 0; tries < TRIES; tries++) {
        td_t *td = NULL;
        uint32_t children = 0;
        if (draw(random, wanted, 1) == 0)
            continue;
        td_must(opened(&td, wanted, 1, 0));
        td_must(td_list_nodes(td, nodes, MOST_NODES, &count));
        for (uint32_t k = 0; k < count; k++)
            children += nodes[k].measured && nodes[k].parent == wanted[0];
        td_close(td);
        if (children > 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t wanted[8], all_nodes[8];
    int compared = 0;
    find_text();
    if (line_of("l1_bound") == NULL)
        SKIP("this CPU has companion figures alone");
    seed = seed_of(argc, argv);
    uint64_t random = seed;
    if (access("/sys/devices/cpu_core", F_OK) == 0)
        move_to(0, 0); /* (a P-core) */
    find_rates();
    draw_rates(seed, 1);
    for (int round = 0; round < ROUNDS; round++) {
        td_t *td = NULL;
        struct td_sample before, after;
        struct td_sum sum = {0};
        const uint32_t level = round % 2 ? 6 : 0;
        const uint32_t number = round ? draw(&random, wanted, (uint32_t)round) : draw_parent(&random, wanted);
        CHECK(number > 0);
        td_must(opened(&td, wanted, number, level));
        td_must(td_list_nodes(td, nodes, MOST_NODES, &count));
        for (uint32_t k = 0; k < number; k++)
            CHECK(node_of(wanted[k]) != NULL && node_of(wanted[k])->measured);
        uint32_t listed = 0, told_of = 0;
        for (uint32_t k = 0; k < count; k++)
            listed += nodes[k].measured;
        td_must(td_read(td, &before));
        work(INSTRUCTIONS);
        td_must(td_read(td, &after));
        td_must(td_decode_tree(&before, &after, nodes, MOST_NODES, &count));
        for (uint32_t k = 0; k < count; k++)
            told_of += nodes[k].measured;
        CHECK_EQ(told_of, listed);
        compared += nodes_are_true("region", after.slots - before.slots, INSTRUCTIONS);
        for (int k = 0; k < EXECUTIONS; k++) {
            td_must(td_sum_begin(td, &sum));
            work(INSTRUCTIONS / EXECUTIONS);
            td_must(td_sum_end(td, &sum));
        }
        td_must(td_sum_decode_tree(&sum, nodes, MOST_NODES, &count));
        compared += nodes_are_true("sum", sum.slots, INSTRUCTIONS);
        td_close(td);
    }
    CHECK(compared > 0);
    /* so many of the deepest ones have no room */
    td_t *td = NULL;
    uint32_t number = 0;
    for (size_t k = all; k-- > 0 && number < 8;)
        if (lines[k].unit[0] && !lines[k].is_metric && opened(&td, (all_nodes[number] = td_node_id(lines[k].name), all_nodes + number), 1, 0) == 0) {
            td_close(td);
            number++;
        }
    CHECK_EQ(opened(&td, all_nodes, number, 0), -ENOTSUP);
    CHECK(last_error_with("one group counts"));
    /* other cores have it */
    const uint32_t of_others = TD_NODE_FRONTEND_MEM_BOUND;
    CHECK_EQ(opened(&td, &of_others, 1, 0), -ENOTSUP);
    CHECK(last_error_with("is no node of this CPU's tree"));
    return 0;
}
