/* Programs drawn at random, of two to five phases that come and go in pieces of 2 ms to a second, at random or in turn: the interval of each node
 * that is events by cycles or by slots has what truly happened, whether all groups take turns (--td-level 6) or those of what is flagged
 * (--drill). Arguments: the seed, and how many programs are tried.
 * needs: counters, explore, not-hybrid */
#include "lib/formulas.h"

enum { MOST_PHASES = 5, MOST_PIECES = 4000 };
/* Instructions of a program, of which each takes a cycle, and of a piece, on the emulated machine some 0.7 in a nanosecond. */
static const double WORK = 1.8e9, PIECES[] = {1.4e6, 1.4e7, 1.4e8, 7e8};

/* A program. */
static struct { int phase; uint64_t instructions; } pieces[MOST_PIECES];
static size_t piece_count;
static int phases;
static struct vm_mix mixes[MOST_PHASES];
static uint64_t per65536[MOST_PHASES][sizeof lines / sizeof lines[0]];

static double random_part(uint64_t *random) { return (double)(next_random(random) % (1 << 20)) / (1 << 20); }

/* The event by which the node is cycles or slots, if it is that: its place; -1: it is another formula. */
static int event_of(const struct text_line *node)
{
    char event[80], unit[32];
    const char *text = node->formula;
    if (text == NULL || node->unit[0] == 0 || node->is_metric)
        return -1;
    text += strspn(text, "( ");
    if (sscanf(text, "%79s / %31s", event, unit) != 2 || strspn(strchr(text, '/') + 2 + strlen(unit), " )") != strlen(strchr(text, '/') + 2 + strlen(unit)))
        return -1;
    const int of_clocks = strcmp(unit, "info_thread_clks") == 0 || (strcmp(unit, "info_core_core_clks") == 0 && !is_smt);
    const struct text_line *line = of_clocks || strcmp(unit, "info_thread_slots") == 0 ? line_of(event) : NULL;
    return line && line->formula == NULL && line->config && !is_own(line->config) ? (int)(line - lines) : -1;
}

static void draw_program(uint64_t seed)
{
    phases = 2 + (int)(next_random(&seed) % (MOST_PHASES - 1));
    const double length = PIECES[next_random(&seed) % 4];
    const int in_turn = next_random(&seed) % 2;
    for (int p = 0; p < phases; p++) {
        /* (no two are alike, and the emulated machine keeps rates of 64) */
        const unsigned way = next_random(&seed) % 12;
        mixes[p] = (struct vm_mix){8 + 8 * (unsigned)p + way % 3 * 2, way / 3 % 2 * 5, way / 6 * 10, 6, 9, 10, 9};
        for (size_t k = 0; k < all; k++)
            per65536[p][k] = next_random(&seed) % 3 ? (uint64_t)(60000 * random_part(&seed)) : 0;
    }
    double left = WORK;
    for (piece_count = 0; left > 0 && piece_count < MOST_PIECES; piece_count++) {
        const double own = length * (0.5 + random_part(&seed));
        pieces[piece_count].phase = (int)(in_turn ? piece_count % (size_t)phases : next_random(&seed) % (uint64_t)phases);
        pieces[piece_count].instructions = (uint64_t)(own < left ? own : left) + 1;
        left -= own;
    }
}

static void run_program(void)
{
    for (int p = 0; p < phases; p++) {
        vm_mix_set(mixes[p], 0, 0, 0);
        vm_rates_clear();
        for (size_t k = 0; k < all; k++) {
            const struct text_line *line = &lines[k];
            if (line->formula || line->config == 0 || line->rate == 1 || is_own(line->config) || !isupper((unsigned char)line->name[0]))
                continue;
            CHECK(line->extra ? vm_rate_set_extra(line->config, line->extra, per65536[p][k], VM_PER_CYCLE)
                              : vm_rate_set(line->config, per65536[p][k], VM_PER_CYCLE));
        }
    }
    for (size_t k = 0; k < piece_count; k++) {
        vm_mix_set(mixes[pieces[k].phase], 0, 0, 0);
        work(pieces[k].instructions);
    }
}

/* What the event truly is of cycles, or of slots of as many. */
static double truly(int event, double of_cycle)
{
    double events = 0, cycles = 0;
    for (size_t k = 0; k < piece_count; k++) {
        events += (double)pieces[k].instructions * (double)per65536[pieces[k].phase][event] / 65536;
        cycles += (double)pieces[k].instructions;
    }
    return events / cycles / of_cycle;
}

/* Some nodes that are counted here, at random, as --nodes takes them. */
static char *draw_nodes(uint64_t seed)
{
    enum { WANTED = 5 };
    static char list[WANTED * 80 + 16];
    int number = 0;
    strcpy(list, "--nodes=");
    while (number < WANTED) {
        const struct text_line *node = &lines[next_random(&seed) % all];
        struct td_options options = {.size = sizeof options, .node_count = 1, .nodes = {td_node_id(node->name)}};
        td_t *td = NULL;
        if (event_of(node) < 0 || strstr(list, node->name) || td_open(&td, &options) != 0)
            continue;
        td_close(td);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%.79s", number ? "," : "", node->name);
        number++;
    }
    return list;
}

int main(int argc, char **argv)
{
    find_text();
    if (argc > 3) {
        draw_program(strtoull(argv[2], NULL, 0));
        run_program();
        return 0;
    }
    stat_begins();
    find_rates();
    uint64_t seed = seed_of(argc, argv);
    const unsigned long programs = argc > 2 ? strtoul(argv[2], NULL, 0) : 3;
    unsigned long compared = 0, wrong = 0;
    double widths = 0;
    for (unsigned long k = 0; k < programs; k++) {
        const uint64_t own = next_random(&seed);
        const int drills = k % 2;
        char number[32];
        snprintf(number, sizeof number, "%llu", (unsigned long long)own);
        char *const command[] = {beside("../release/topdown"), strdup("stat"), drills ? strdup("--drill") : draw_nodes(own), strdup("-o"),
                                 in_scratch("r.json"), strdup(own_path()), strdup("work"), number, strdup("now"), NULL};
        CHECK_EQ(run_alone(command), 0);
        FILE *const file = fopen(in_scratch("r.json"), "r");
        CHECK(file != NULL);
        report[fread(report, 1, sizeof report - 1, file)] = 0;
        fclose(file);
        draw_program(own);
        for (const struct text_line *node = lines; node < lines + all; node++) {
            double share[3];
            const int event = event_of(node);
            if (event < 0 || !told(node->name, share))
                continue;
            const double truth = truly(event, strstr(node->formula, "slots") ? width : 1);
            if (truth > 1)
                continue; /* (no share) */
            const double slack = 0.01 * truth; /* (the program has parts besides the work, and a rate is rounded to 1/65536) */
            compared++;
            if (getenv("SHOW"))
                fprintf(stderr, "%s %d phases %zu pieces: %s %.3f: %.3f (%.3f to %.3f)\n", drills ? "drill" : "nodes", phases, piece_count, node->name, truth, share[0], share[1], share[2]);
            widths += share[2] - share[1];
            if (share[1] - slack <= truth && truth <= share[2] + slack)
                continue;
            wrong++;
            fprintf(stderr, "%s, %s, %d phases in %zu pieces: %s is %f; told %f, between %f and %f\n", number, command[2], phases, piece_count, node->name,
                    truth, share[0], share[1], share[2]);
        }
    }
    fprintf(stderr, "%lu programs, %lu nodes compared, %lu outside, mean width %.3f\n", programs, compared, wrong, widths / (double)compared);
    CHECK(compared >= 3 * programs);
    /* (of four standard errors, and what was not seen in full) */
    CHECK(wrong * 1000 <= compared);
    return 0;
}
