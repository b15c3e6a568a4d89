/* Regions on a core with general-purpose counters and a tree of three levels: the report, as text and CSV, has each of its nodes. */
#include "preload.h"

static int regions(void)
{
    for (int k = 0; k < 20; k++) {
        td_region_begin("outer");
        work(4000000);
        td_region_begin("inner");
        work(4000000);
        td_region_end("inner");
        td_region_end("outer");
    }
    return 0;
}

/* The share of this node, in this region, is this, and lies between its ends. */
static void node_is(const char *csv, const char *region, const char *name, double share)
{
    char low[80], high[80];
    snprintf(low, sizeof low, "%s_low", name);
    snprintf(high, sizeof high, "%s_high", name);
    CHECK(figure(csv, region, low) <= share && share <= figure(csv, region, high));
    CHECK_NEAR(figure(csv, region, name), share, 0.05);
    CHECK(figure(csv, region, high) - figure(csv, region, low) < 0.3);
}

/* What the table of the made-up core has its counters count. */
static void has_all_levels(const char *csv)
{
    static const char *const REGIONS[] = {NULL, "outer", "inner"};
    for (int k = 0; k < 3; k++) {
        CHECK_NEAR(figure(csv, REGIONS[k], "retiring"), 0.25, figure(csv, REGIONS[k], "error_1"));
        CHECK(isnan(figure(csv, REGIONS[k], "memory_bound"))); /* its tree has not all of level 2 */
        node_is(csv, REGIONS[k], "tma_retiring", 0.25);
        node_is(csv, REGIONS[k], "tma_bad_speculation", 0.05);
        node_is(csv, REGIONS[k], "tma_memory_bound", 0.45);
        node_is(csv, REGIONS[k], "tma_core_bound", 0.15);
        node_is(csv, REGIONS[k], "tma_made_up_cache_bound", 0.1);
        node_is(csv, REGIONS[k], "tma_made_up_dram_bound", 0.2);
    }
    CHECK_EQ(figure(csv, "outer", "measured"), 20);
    CHECK(strstr(csv, "memory bound: 4") != NULL);
    CHECK(strstr(csv, "tma_heavy_operations") == NULL);
}

static const struct preload_case CASES[] = {{"regions", regions, has_all_levels, NULL}};

int main(int argc, char **argv)
{
    setenv("TOPDOWN_SIMULATE", "made-up core", 1);
    return preload_main(argc, argv, CASES, sizeof CASES / sizeof CASES[0]);
}
