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
        CHECK_EQ(opens(&u), i < 64 ? -E2BIG : 0);
    }

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
