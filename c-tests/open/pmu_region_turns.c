/* Groups that take turns in a region, from one execution to another (td_turns_open): nodes that one group does not hold are each what its
 * published formula says of the rates at which the program's events truly happen, within their intervals after 200 executions; of a region
 * that is drilled down what is above its threshold is measured with what is below it. What is wrong is refused. Arguments: the seed.
 * needs: counters, not-hybrid */
#include "command/lib/told_nodes.h"
#include "perf.h"
#include <sys/wait.h>

/* Some millisecond each. */
enum { INSTRUCTIONS = 1000000, EXECUTIONS = 200, WANTED = 5 };

static int opened(td_turns_t **turns, const uint32_t *wanted, uint32_t number, uint32_t level, uint32_t how)
{
    struct td_options options = {.size = sizeof options, .node_count = number, .level = level};
    memcpy(options.nodes, wanted, number * sizeof *wanted);
    return td_turns_open(turns, &options, how);
}

/* Whether one group has room for all. */
static int go_together(const uint32_t *wanted, uint32_t number)
{
    struct td_options options = {.size = sizeof options, .node_count = number};
    td_t *td = NULL;
    memcpy(options.nodes, wanted, number * sizeof *wanted);
    const int code = td_open(&td, &options);
    if (code == 0)
        td_close(td);
    return code == 0;
}

/* Draws nodes each of which is counted, and which do not go together by twos, unless there are too few such. */
static void draw(uint64_t *random, uint32_t *wanted)
{
    for (uint32_t number = 0, tries = 0; number < WANTED; tries++) {
        const struct text_line *line = &lines[next_random(random) % all];
        CHECK(tries < 300);
        td_turns_t *turns = NULL;
        if (line->unit[0] == 0 || line->is_metric || (wanted[number] = td_node_id(line->name)) == TD_NODE_NONE)
            continue;
        if (opened(&turns, wanted + number, 1, 0, TD_TURNS_ALL) != 0) {
            CHECK(last_error_with("cannot be counted here") || last_error_with("is in no group that takes turns"));
            continue;
        }
        td_turns_close(turns);
        int goes = 0;
        for (uint32_t k = 0; k < number; k++) {
            const uint32_t two[] = {wanted[k], wanted[number]};
            goes |= wanted[k] == wanted[number] || (tries < 60 && go_together(two, 2));
        }
        number += !goes;
    }
    CHECK(!go_together(wanted, WANTED));
}

/* A process that has opened as many lists of nodes as it has room for has its tree all the same. */
static void has_a_tree_after_lists(void)
{
    td_turns_t *turns = NULL;
    const pid_t child = fork();
    if (child == 0) {
        for (uint32_t level = 0; level <= 6; level++)
            for (const struct text_line *line = lines; line < lines + all; line++) {
                struct td_options options = {.size = sizeof options, .node_count = 1, .level = level, .nodes = {td_node_id(line->name)}};
                td_t *td = NULL;
                if (!line->unit[0] || line->is_metric)
                    continue;
                if (td_open(&td, &options) == 0)
                    td_close(td);
                else if (last_error_with("asked for so many other lists")) {
                    td_must(opened(&turns, NULL, 0, 0, TD_TURNS_DRILL));
                    _exit(0);
                }
            }
        FAIL("there was room for all lists");
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* Slots of all executions. */
static uint64_t slots_of(void)
{
    const struct td_node *const root = node_of(TD_NODE_RETIRING);
    CHECK(root && root->measured);
    return root->whole;
}

static void execute(td_turns_t *turns, int executions)
{
    for (int k = 0; k < executions; k++) {
        td_must(td_turns_begin(turns));
        work(INSTRUCTIONS);
        td_must(td_turns_end(turns));
    }
    td_must(td_turns_decode_tree(turns, nodes, MOST_NODES, &count));
    CHECK(count <= MOST_NODES);
}

/* A third of the executions, of another mix, is while others hold the counters: what they are is in the intervals. */
static void what_others_kept_is_in_the_intervals(uint32_t how)
{
    enum { EVENTS = 8, INSTRUCTIONS_RETIRED = 0xc0 };
    const struct vm_mix mixes[] = {{12, 2, 2, 0, 12, 12, 15}, {12, 2, 40, 0, 12, 14, 8}, {12, 2, 2, 0, 12, 12, 15}};
    int others[EVENTS];
    double frontend = 0;
    td_turns_t *turns = NULL;
    td_must(opened(&turns, NULL, 0, 2, how));
    for (int phase = 0; phase < 3; phase++) {
        vm_mix_set(mixes[phase], 0, 0, 0);
        frontend += mixes[phase].frontend / 64.0 / 3;
        for (int k = 0; k < EVENTS && phase == 1; k++) {
            struct perf_event_attr attr = event_of(PERF_TYPE_RAW, INSTRUCTIONS_RETIRED);
            attr.pinned = 1;
            others[k] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
            CHECK(others[k] >= 0);
        }
        execute(turns, EXECUTIONS);
        for (int k = 0; k < EVENTS && phase == 1; k++)
            CHECK_EQ(close(others[k]), 0);
    }
    const struct td_node *const node = node_of(TD_NODE_FRONTEND_BOUND);
    CHECK(node != NULL);
    fprintf(stderr, "beside others: %f, %f to %f, in truth %f, counted %f\n", node->value, node->low, node->high, frontend, node->running);
    CHECK(node->low <= frontend && frontend <= node->high);
    CHECK(node->running < 1);
    td_turns_close(turns);
}

int main(int argc, char **argv)
{
    uint32_t wanted[WANTED];
    td_turns_t *turns = NULL, *other = NULL;
    find_text();
    if (line_of("l1_bound") == NULL)
        SKIP("this CPU has companion figures alone");
    uint64_t seed = seed_of(argc, argv);
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    find_rates();
    draw_rates(seed, 1);
    has_a_tree_after_lists();
    draw(&seed, wanted);
    td_must(opened(&turns, wanted, WANTED, 0, TD_TURNS_ALL));
    CHECK_EQ(opened(&other, wanted, 1, 0, TD_TURNS_ALL), -EBUSY);
    CHECK(last_error_with("td_turns_close"));
    /* of nothing it is told what was named, and that it was not measured */
    td_must(td_turns_decode_tree(turns, nodes, MOST_NODES, &count));
    CHECK_EQ(count, WANTED);
    for (int k = 0; k < WANTED; k++)
        CHECK(node_of(wanted[k]) && !node_of(wanted[k])->measured && isnan(node_of(wanted[k])->value));
    td_must(td_turns_begin(turns));
    CHECK_EQ(td_turns_decode_tree(turns, nodes, MOST_NODES, &count), -EINVAL);
    CHECK(last_error_with("has not ended"));
    td_must(td_turns_end(turns));
    execute(turns, EXECUTIONS);
    for (int k = 0; k < WANTED; k++)
        /* (level 1 of these rates has wide bounds on cores of other widths, and a parent may have nothing) */
        if (width == 6 && !(node_of(wanted[k]) && node_of(wanted[k])->measured))
            FAIL("%s was not measured", td_node_name(wanted[k]));
    CHECK(nodes_are_true("turns", slots_of(), (uint64_t)EXECUTIONS * INSTRUCTIONS) > 0 || width != 6); /* (of some nodes the rates do not tell) */
    td_turns_close(turns);
    /* level 1 is of all executions */
    td_must(opened(&turns, NULL, 0, 0, TD_TURNS_DRILL));
    execute(turns, 4 * EXECUTIONS);
    for (uint32_t k = 0; k < count; k++)
        if (nodes[k].level < 3)
            fprintf(stderr, "%s: %f, %f to %f\n", td_node_name(nodes[k].id), nodes[k].value, nodes[k].low, nodes[k].high);
    CHECK(node_of(TD_NODE_BACKEND_BOUND) != NULL);
    uint32_t deep = 0;
    for (uint32_t k = 0; k < count; k++)
        deep += nodes[k].level > 2;
    fprintf(stderr, "drilled down: %u nodes of deeper levels\n", deep);
    CHECK(deep > 3);
    CHECK(nodes_are_true("drilled", slots_of(), (uint64_t)4 * EXECUTIONS * INSTRUCTIONS) > 3);
    td_turns_close(turns);
    td_turns_close(NULL);
    what_others_kept_is_in_the_intervals(TD_TURNS_ALL);
    what_others_kept_is_in_the_intervals(TD_TURNS_DRILL);
    CHECK_EQ(td_turns_open(&turns, NULL, 2), -EINVAL);
    CHECK(last_error_with("TD_TURNS"));
    CHECK_EQ(td_turns_open(NULL, NULL, TD_TURNS_ALL), -EINVAL);
    const struct td_options registers = {.size = sizeof registers, .source = TD_SOURCE_REGISTERS};
    CHECK_EQ(td_turns_open(&turns, &registers, TD_TURNS_DRILL), -EINVAL);
    CHECK(last_error_with("registers"));
    CHECK_EQ(td_turns_begin(NULL), -EINVAL);
    CHECK_EQ(td_turns_end(NULL), -EINVAL);
    CHECK_EQ(opened(&turns, NULL, 0, 7, TD_TURNS_ALL), -EINVAL);
    const uint32_t of_others = TD_NODE_FRONTEND_MEM_BOUND;
    CHECK_EQ(opened(&turns, &of_others, 1, 0, TD_TURNS_ALL), -ENOTSUP);
    CHECK(last_error_with("is no node of this CPU's tree"));
    return 0;
}
