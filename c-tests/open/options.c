/* Options: older and newer structures are understood, values that this version does not know are refused. */
#include "check.h"
#include <limits.h>

/* options with room behind them, as a later version's would have */
union longer {
    struct td_options options;
    unsigned char bytes[8192];
};

static union longer fresh(void)
{
    union longer u;
    memset(&u, 0, sizeof u);
    u.options.size = sizeof u.options;
    u.options.flags = TD_FLAG_SIMULATE;
    return u;
}

static int opens(const union longer *u)
{
    td_t *td = (td_t *)-1;
    int code = td_open(&td, &u->options);
    if (code == 0)
        td_close(td);
    else
        CHECK(td == (td_t *)-1); /* outputs are written on success only */
    return code;
}

/* the code for options that differ from good ones in one field */
#define WITH(field, value) (u = fresh(), u.options.field = (value), opens(&u))

/* td_open's code and text for these, on whatever PMU this machine has or has not. */
static int opened(uint32_t source, uint32_t core_type, uint32_t flags, char *text, size_t length)
{
    const struct td_options options = {.size = sizeof options, .source = source, .core_type = core_type, .flags = flags};
    td_t *td = NULL;
    const int code = td_open(&td, &options);
    text[0] = '\0';
    if (code == 0) {
        struct td_info info;
        td_must(td_get_info(td, &info));
        snprintf(text, length, "%s, %u counters: %s", info.pmu, info.counters, info.note);
        td_close(td);
    } else {
        td_last_error(text, length);
    }
    return code;
}

/* The fields, the flags, and both of them mean the same. */
static void agree(uint32_t source, uint32_t core_type, uint32_t flags)
{
    char fields[1024], alone[1024], both[1024];
    const int code = opened(source, core_type, 0, fields, sizeof fields);
    CHECK_EQ(opened(TD_SOURCE_AUTO, TD_CORES_AUTO, flags, alone, sizeof alone), code);
    CHECK_EQ(opened(source, core_type, flags, both, sizeof both), code);
    CHECK(code != -EINVAL && strcmp(fields, alone) == 0 && strcmp(fields, both) == 0);
}

/* Nodes that are asked for by their numbers, with one other field that is not zero. */
#define NODES_WITH(count, first, field, value) \
    (u = fresh(), u.options.flags = 0, u.options.node_count = (count), u.options.nodes[0] = (first), u.options.field = (value), opens(&u))

/* What is no list of nodes is refused with the field's name, and what goes with none, on any machine. */
static void nodes_are_checked(void)
{
    union longer u;
    enum { FETCH = TD_NODE_FETCH_LATENCY, ROOM_OF_FIRST = 5 };
    CHECK_EQ(NODES_WITH(9, FETCH, level, 0), -EINVAL);
    CHECK(last_error_with("options->node_count is 9"));
    CHECK_EQ(NODES_WITH(UINT32_MAX, FETCH, level, 0), -EINVAL);
    CHECK_EQ(NODES_WITH(0, FETCH, level, 0), -EINVAL);
    CHECK(last_error_with("behind the first 0"));
    CHECK_EQ(NODES_WITH(1, TD_NODE_NONE, level, 0), -EINVAL);
    CHECK(last_error_with("options->nodes[0] is 0"));
    CHECK_EQ(NODES_WITH(1, 100000, level, 0), -EINVAL);
    CHECK_EQ(NODES_WITH(2, FETCH, nodes[1], FETCH), -EINVAL);
    CHECK(last_error_with("fetch_latency twice"));
    CHECK_EQ(NODES_WITH(1, FETCH, level, 7), -EINVAL);
    CHECK(last_error_with("level 7"));
    CHECK_EQ(NODES_WITH(1, FETCH, subtree, TD_NODE_FRONTEND_BOUND), -EINVAL);
    CHECK(last_error_with("options->subtree"));
    CHECK_EQ(NODES_WITH(1, FETCH, source, TD_SOURCE_REGISTERS), -EINVAL);
    CHECK(last_error_with("TD_SOURCE_REGISTERS"));
    CHECK_EQ(NODES_WITH(1, FETCH, core_type, TD_CORES_E), -EINVAL);
    CHECK(last_error_with("TD_CORES_E"));
    CHECK_EQ(NODES_WITH(1, FETCH, flags, TD_FLAG_SIMULATE), -EINVAL);
    CHECK(last_error_with("TD_FLAG_SIMULATE"));
    /* those of later fields are not there in the size of the first version */
    for (uint32_t count = 1; count <= ROOM_OF_FIRST + 1; count++) {
        u = fresh();
        u.options.node_count = count;
        for (uint32_t k = 0; k < count; k++)
            u.options.nodes[k] = TD_NODE_RETIRING + k;
        u.options.size = 0;
        CHECK_EQ(opens(&u), -EINVAL);
        CHECK_EQ(last_error_with("has room for 5 nodes") != 0, count > ROOM_OF_FIRST);
    }
    /* (this machine's own counters tell what becomes of a good list) */
    CHECK(NODES_WITH(1, FETCH, level, 0) != -EINVAL && NODES_WITH(1, td_node_id("tma_l1_bound"), level, 6) != -EINVAL);
}

/* These contradict each other, and the error names both. */
static void differ(uint32_t source, uint32_t core_type, uint32_t flags, const char *one, const char *other)
{
    char text[1024];
    CHECK_EQ(opened(source, core_type, flags, text, sizeof text), -EINVAL);
    CHECK(strstr(text, one) != NULL && strstr(text, other) != NULL);
}

int main(void)
{
    union longer u;
    CHECK_EQ(WITH(size, sizeof(struct td_options)), 0);
    CHECK_EQ(WITH(size, 0), 0);
    for (uint32_t size = 1; size < offsetof(struct td_options, max_overhead_ppm); size++)
        CHECK_EQ(WITH(size, size), -EINVAL);
    for (uint32_t size = offsetof(struct td_options, max_overhead_ppm); size <= 4096; size++)
        CHECK_EQ(WITH(size, size), 0);
    CHECK_EQ(WITH(size, 4097), -E2BIG);
    CHECK_EQ(WITH(size, UINT32_MAX), -E2BIG);

    /* each byte behind the known fields, within the size and beyond it */
    for (size_t i = offsetof(struct td_options, reserved); i < 200; i++) {
        u = fresh();
        u.bytes[i] = 1;
        u.options.size = 200;
        CHECK_EQ(opens(&u), -E2BIG);
        u.options.size = (uint32_t)i;
        CHECK_EQ(opens(&u), 0);
    }

    /* size 0 is that of the first version */
    for (size_t i = 60; i < 68; i++) {
        u = fresh();
        u.bytes[i] = 1;
        u.options.size = 0;
        CHECK_EQ(opens(&u), i < 64 ? -EINVAL : 0); /* a node, but node_count has none */
    }

    nodes_are_checked();
    for (int bit = 4; bit < 32; bit++) {
        const uint32_t flag = 1u << bit;
        if (flag == TD_FLAG_E_CORES || flag == TD_FLAG_BARE)
            continue;
        CHECK_EQ(WITH(flags, TD_FLAG_SIMULATE | flag), -EINVAL);
        CHECK(last_error_with("flags"));
    }
    CHECK_EQ(WITH(flags, TD_FLAG_SIMULATE | TD_FLAG_NO_RDPMC), 0);
    CHECK_EQ(WITH(flags, TD_FLAG_SIMULATE | TD_FLAG_BARE), 0);
    CHECK_EQ(WITH(flags, TD_FLAG_SIMULATE | TD_FLAG_KERNEL), -ENOTSUP);
    CHECK_EQ(WITH(flags, TD_FLAG_SIMULATE | TD_FLAG_INHERIT), -ENOTSUP);
    CHECK_EQ(WITH(flags, TD_FLAG_SIMULATE | TD_FLAG_E_CORES), -ENOTSUP);

    /* fields, and the flags that say the same */
    CHECK_EQ(WITH(source, TD_SOURCE_REGISTERS), -EINVAL);
    CHECK_EQ(WITH(source, TD_SOURCE_COUNTERS), -EINVAL);
    CHECK(last_error_with("options->source") && last_error_with("TD_FLAG_SIMULATE"));
    CHECK_EQ(WITH(source, 3), -EINVAL);
    CHECK(last_error_with("options->source is 3") && last_error_with("TD_SOURCE_*"));
    CHECK_EQ(WITH(core_type, TD_CORES_P), 0);
    CHECK_EQ(WITH(core_type, TD_CORES_E), -ENOTSUP);
    CHECK_EQ(WITH(core_type, UINT32_MAX), -EINVAL);
    CHECK(last_error_with("options->core_type") && last_error_with("TD_CORES_*"));
    agree(TD_SOURCE_REGISTERS, TD_CORES_AUTO, TD_FLAG_REGISTERS);
    agree(TD_SOURCE_COUNTERS, TD_CORES_AUTO, TD_FLAG_COUNTERS);
    agree(TD_SOURCE_AUTO, TD_CORES_E, TD_FLAG_E_CORES);
    agree(TD_SOURCE_COUNTERS, TD_CORES_E, TD_FLAG_COUNTERS | TD_FLAG_E_CORES);
    differ(TD_SOURCE_COUNTERS, TD_CORES_AUTO, TD_FLAG_REGISTERS, "TD_SOURCE_COUNTERS", "TD_FLAG_REGISTERS");
    differ(TD_SOURCE_REGISTERS, TD_CORES_AUTO, TD_FLAG_COUNTERS, "TD_SOURCE_REGISTERS", "TD_FLAG_COUNTERS");
    differ(TD_SOURCE_AUTO, TD_CORES_AUTO, TD_FLAG_REGISTERS | TD_FLAG_COUNTERS, "TD_FLAG_REGISTERS", "TD_FLAG_COUNTERS");
    differ(TD_SOURCE_AUTO, TD_CORES_P, TD_FLAG_E_CORES, "TD_CORES_P", "TD_FLAG_E_CORES");
    differ(TD_SOURCE_REGISTERS, TD_CORES_E, 0, "TD_SOURCE_REGISTERS", "TD_CORES_E");

    CHECK_EQ(WITH(target, 3), -EINVAL);
    CHECK(last_error_with("target"));
    CHECK_EQ(WITH(target, UINT32_MAX), -EINVAL);
    CHECK_EQ(WITH(target, TD_TARGET_CPU), -ENOTSUP); /* the simulated PMU counts for this thread only */
    CHECK_EQ(WITH(id, 1), -EINVAL);
    CHECK_EQ(WITH(id, INT_MIN), -EINVAL);
    CHECK_EQ(WITH(target, TD_TARGET_TASK), -EINVAL); /* id 0 is no thread */
    u = fresh();
    u.options.target = TD_TARGET_TASK;
    u.options.id = getpid();
    CHECK_EQ(opens(&u), -ENOTSUP);
    u.options.id = -1;
    CHECK_EQ(opens(&u), -EINVAL);
    u.options.target = TD_TARGET_CPU;
    CHECK_EQ(opens(&u), -EINVAL);

    for (uint32_t level = 0; level <= 2; level++)
        CHECK_EQ(WITH(level, level), 0);
    CHECK_EQ(WITH(level, 3), -ENOTSUP); /* other cores have it */
    CHECK_EQ(WITH(level, 4), -EINVAL);
    CHECK_EQ(WITH(level, UINT32_MAX), -EINVAL);

    CHECK_EQ(WITH(max_error_ppm, 1), 0);
    CHECK_EQ(WITH(max_error_ppm, 1000000), 0);
    CHECK_EQ(WITH(max_error_ppm, 1000001), -EINVAL);
    CHECK_EQ(WITH(max_overhead_ppm, 1000000), 0);
    CHECK_EQ(WITH(max_overhead_ppm, 1000001), -EINVAL);
    CHECK(last_error_with("max_overhead_ppm"));

    struct td_info info;
    td_t *td;
    u = fresh();
    u.options.max_error_ppm = 2500;
    u.options.max_overhead_ppm = 500;
    td_must(td_open(&td, &u.options));
    td_must(td_get_info(td, &info));
    CHECK_EQ(info.max_error_ppm, 2500);
    CHECK_EQ(info.max_overhead_ppm, 500);

    /* mixes that are none */
    struct td_mix good, bad;
    memset(&good, 0, sizeof good);
    good.size = sizeof good;
    good.retiring = good.backend_bound = 0.5;
    td_must(td_simulate_mix(td, &good));
#define BAD(field, value) (bad = good, bad.field = (value), CHECK_EQ(td_simulate_mix(td, &bad), -EINVAL))
    BAD(size, 1);
    BAD(size, sizeof good - 1);
    BAD(reserved, 1);
    struct {
        struct td_mix mix;
        uint64_t later;
    } longer = {.mix = good};
    for (uint32_t size = 0; size <= sizeof longer; size += sizeof longer.mix) {
        longer.mix.size = size;
        td_must(td_simulate_mix(td, &longer.mix));
    }
    longer.mix.size = sizeof longer;
    td_must(td_simulate_mix(td, &longer.mix));
    longer.later = 1;
    CHECK_EQ(td_simulate_mix(td, &longer.mix), -E2BIG);
    BAD(retiring, 0.6);
    BAD(retiring, -0.5);
    BAD(retiring, NAN);
    BAD(retiring, INFINITY);
    BAD(heavy_operations, 0.6);
    BAD(heavy_operations, -0.1);
    BAD(branch_mispredicts, 0.1);
    BAD(fetch_latency, NAN);
    td_close(td);
    return 0;
}
