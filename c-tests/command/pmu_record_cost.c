/* A burst of `topdown record`, with a sample of the thread's clock and all that the recorder makes of them, takes no more than 140,000 instructions:
 * on one CPU a program takes so much longer the more bursts there are. (An instruction takes a nanosecond on the emulated machine.)
 * needs: counters, not-hybrid, explore */
#include "lib/stat.h"
#include "lib/profile.h"

enum { RUNS = 3 };

/* Of a recording at such a rate, how many nanoseconds the program took, and how many bursts there were. */
struct recorded {
    double ns, bursts;
};

static double field(const char *json, const char *name)
{
    const char *const at = strstr(json, name);
    CHECK(at != NULL);
    return atof(at + strlen(name));
}

static struct recorded recorded(const char *rate)
{
    static char json[1 << 16];
    char *const arguments[] = {"-F", strdup(rate), "--budget=50", "-o", in_scratch("r.json"), "--", beside("lib/functions"), "4", "5000", "300", "plain",
                               in_scratch("out"), NULL};
    CHECK_EQ(run_under("record", NULL, arguments), 0);
    FILE *const file = fopen(in_scratch("r.json"), "r");
    CHECK(file != NULL);
    json[fread(json, 1, sizeof json - 1, file)] = 0;
    fclose(file);
    return (struct recorded){field(json, "\"elapsed_ns\":"), field(json, "\"bursts\":")};
}

/* (what else runs on the machine, on either CPU, makes one longer) */
static struct recorded shorter(struct recorded one, struct recorded other) { return other.ns < one.ns ? other : one; }

int main(void)
{
    stat_begins();
    kernel_never_lowers();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    recorded("100"); /* (files are read from the host) */
    struct recorded few = {INFINITY, 0}, many = {INFINITY, 0};
    for (int k = 0; k < RUNS; k++) {
        few = shorter(few, recorded("100"));
        many = shorter(many, recorded("2000"));
    }
    const double each = (many.ns - few.ns) / (many.bursts - few.bursts);
    fprintf(stderr, "%.0f bursts in %.1f ms, %.0f in %.1f: %.0f instructions each\n", few.bursts, few.ns / 1e6, many.bursts, many.ns / 1e6, each);
    CHECK(many.bursts > 400 && few.bursts < 100);
    CHECK(each > 10000 && each < 140000);
    return 0;
}
