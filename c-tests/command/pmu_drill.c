/* `topdown stat --drill` leads to the leaf that a program was given, in one run of two seconds, with an interval that has the truth; of a
 * program of two phases to the leaf of each. What cannot be counted is named with the reason before the program runs. Arguments: the seed,
 * and how many of the programs are tried.
 * needs: counters, not-hybrid */
#include "lib/plants.h"

/* A figure of the bottleneck view, as its formula has it of a plant's mix and events. (That of others divides by what does not happen.) */
static const struct view { const char *leaf, *bottleneck; double share; } VIEWS[] = {
    {"mem_bandwidth", "data_cache_memory_bandwidth", 45 / 64.0 * 0.4 / 0.5 * 0.35 / 0.38},
    {"code_l2_hit", "big_code", 35 / 64.0},
    {"code_stlb_hit", "big_code", 35 / 64.0},
    {"unknown_branches", "big_code", 35 / 64.0},
    {"lcp", "instruction_fetch_bw", 40 / 64.0},
    {"dsb_switches", "instruction_fetch_bw", 40 / 64.0},
    {"mispredicts_resteers", "mispredictions", 30 / 64.0 + 10.5 / 64 * 15 / 16},
};

static const char *report;
static unsigned width; /* slots of a cycle */

/* What is behind a key of an entry of this list, which has this name; NULL: it is not there. */
static const char *text_of(const char *list, const char *name_key, const char *name, const char *key)
{
    char entry[96];
    const char *all = strstr(report, list);
    snprintf(entry, sizeof entry, "%s\"%s\"", name_key, name);
    const char *one = all ? strstr(all, entry) : NULL, *over = one ? strstr(one, "}") : NULL;
    const char *value = one ? strstr(one, key) : NULL;
    return value && value < over ? value + strlen(key) : NULL;
}

/* The same of the finding of this node. */
static const char *found_text(const char *leaf, const char *key)
{
    char node[64];
    snprintf(node, sizeof node, "tma_%s", leaf);
    return text_of("\"findings\"", "\"node\": ", node, key);
}

/* The same as a number; NaN: it was not found. */
static double found(const char *leaf, const char *key)
{
    const char *text = found_text(leaf, key);
    return text ? strtod(text, NULL) : NAN;
}

static void read_report(void)
{
    report = text_in("r.json");
    CHECK_EQ(unlink(in_scratch("r.json")), 0);
}

static void drilled(const char *first, const char *second)
{
    char *const command[] = {beside("../release/topdown"), strdup("stat"), strdup("--drill"), strdup("-o"), in_scratch("r.json"),
                             strdup(own_path()), strdup("grow"), strdup(first), second ? strdup(second) : NULL, NULL};
    CHECK_EQ(run_alone(command), 0);
    read_report();
}

/* The figure is true. */
static void view(const struct view *view)
{
    double ends[2];
    for (int end = 0; end < 2; end++) {
        const char *text = text_of("\"bottlenecks\"", "\"name\": ", view->bottleneck, end ? "\"high\": " : "\"low\": ");
        CHECK(text != NULL);
        ends[end] = strtod(text, NULL);
    }
    fprintf(stderr, "%s: between %f and %f\n", view->bottleneck, ends[0], ends[1]);
    /* (the program has parts besides the work) */
    if (!(ends[0] - 0.01 * view->share <= view->share && view->share <= ends[1] + 0.01 * view->share))
        FAIL("%s is %f", view->bottleneck, view->share);
    CHECK(ends[1] - ends[0] < 0.8);
}

/* The program with one plant: its leaf is found, where it is true. */
static void one_leaf(const struct plant *plant)
{
    drilled(plant->leaf, NULL);
    const double value = found(plant->leaf, "\"value\": "), low = found(plant->leaf, "\"low\": "), high = found(plant->leaf, "\"high\": ");
    fprintf(stderr, "%s: %f, between %f and %f\n", plant->leaf, value, low, high);
    if (!(low <= value && value <= high))
        FAIL("%s was not found:\n%s", plant->leaf, strstr(report, "\"findings\"") ? strstr(report, "\"findings\"") : report);
    CHECK(low > 0 && high < 1);
    const int of_cycles = strncmp(found_text(plant->leaf, "\"unit\": "), "\"clocks\"", 8) == 0 || strncmp(plant->leaf, "dsb", 3) == 0 ||
                          strncmp(plant->leaf, "decoder0", 8) == 0;
    const double share = of_cycles ? plant->share : plant->share * WIDTH / width;
    /* (the program has parts besides the work, and a rate is rounded to 1/65536) */
    if (!(low - 0.01 * share <= share && share <= high + 0.01 * share))
        FAIL("%s is %f", plant->leaf, share);
    for (size_t k = 0; k < sizeof VIEWS / sizeof VIEWS[0]; k++)
        if (strcmp(VIEWS[k].leaf, plant->leaf) == 0)
            view(&VIEWS[k]);
}

/* A region of this process: what its handle counts below a node, read in user space, is true in each of 200 executions. */
static void regions_below(const char *node, const char *leaf, const struct plant *plant)
{
    struct td_options options;
    struct td_info info;
    struct td_sample before, after;
    struct td_node nodes[24];
    uint32_t count = 0, executions = 0;
    td_t *td = NULL;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.subtree = td_node_id(node);
    td_must(td_open(&td, &options));
    memset(&info, 0, sizeof info);
    td_must(td_get_info(td, &info));
    CHECK_EQ(info.path, TD_PATH_RDPMC);
    CHECK_EQ(info.level, 3);
    grow(plant, 0);
    for (int region = 0; region < 200; region++) {
        td_must(td_read(td, &before));
        work(300000);
        td_must(td_read(td, &after));
        td_must(td_decode_tree(&before, &after, nodes, 24, &count));
        CHECK(count <= 24);
        for (const struct td_node *one = nodes; one < nodes + count; one++)
            if (one->measured && strcmp(td_node_name(one->id), leaf) == 0) {
                if (!(one->low <= plant->share && plant->share <= one->high))
                    FAIL("%s: %f, between %f and %f", leaf, one->value, one->low, one->high);
                CHECK_EQ(one->unit, TD_UNIT_CLOCKS);
                executions += one->high - one->low < 0.2;
            }
    }
    CHECK(executions > 100);
    td_close(td);
}

int main(int argc, char **argv)
{
    width = read_events();
    const struct plant *known[ALL];
    size_t count = 0;
    for (const struct plant *plant = PLANTS; plant < PLANTS + ALL; plant++)
        if (is_known(plant))
            known[count++] = plant;
    CHECK(count >= 8);
    if (argc > 2 && strcmp(argv[1], "grow") == 0) {
        for (int k = 2; k < argc; k++)
            for (size_t one = 0; one < count; one++)
                if (strcmp(known[one]->leaf, argv[k]) == 0)
                    grow(known[one], 1.8);
        return 0;
    }
    if (width != WIDTH)
        SKIP("level 2 of this core follows from events that no plant sets yet");
    stat_begins();
    uint64_t seed = seed_of(argc, argv);
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    const size_t first = next_random(&seed) % count;
    const size_t wanted = argc > 2 ? strtoul(argv[2], NULL, 0) : in_gate() ? 1 : 5;
    for (size_t k = 0; k < wanted; k++)
        one_leaf(known[(first + k) % count]);
    /* each of two phases has its own */
    drilled("slow_pause", "lcp");
    /* (they take half of the time each, but for what is before main; what passed before a leaf could be counted is in its bound) */
    const char *const leaves[] = {"slow_pause", "lcp"};
    for (int k = 0; k < 2; k++) {
        const double low = found(leaves[k], "\"low\": "), high = found(leaves[k], "\"high\": ");
        fprintf(stderr, "%s of a phase: %f, between %f and %f\n", leaves[k], found(leaves[k], "\"value\": "), low, high);
        CHECK(low <= 0.102 && 0.098 <= high);
    }
    const struct plant divider = {"divider", 0.5, CORE, {{"ARITH.DIV_ACTIVE", 0.5}}};
    regions_below("tma_core_bound", "tma_divider", &divider);
    /* what nothing counts is refused before the program runs */
    char *const refused[] = {beside("../release/topdown"), strdup("stat"), strdup("--nodes"), strdup("other_light_ops"), strdup("true"), NULL};
    CHECK_EQ(WEXITSTATUS(run_alone(refused)), 125);
    CHECK(strstr(stat_said(), "cannot be counted here") != NULL);
    return 0;
}
