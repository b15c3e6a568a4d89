/* measure.h with counters: what is printed of loops of known length, in several groups and threads. */
#define EVENT_MACROS
#include <interrupts.h>
#include <measure.h>
#include <rdpmc.h>

#include "counters.h"
#include <pthread.h>

enum { LOOP = 500000, SLACK = 5000 };

static unsigned long long not_branches(struct measure *m, unsigned long long total[N_COUNTER], int i)
{
    CHECK_EQ(m[i].counter, BRANCHES);
    return total[0] - total[i];
}

/* instructions, branches of them, cycles without a name, and one that is calculated */
enum { instructions = 0xc0, branches = 0xc4 };
static struct measure mine[N_COUNTER] = {E(instructions), ETO0(branches), {NULL, CYCLES, 0, NULL},
                                         EFUNC(branches, -1, not_branches)};
static struct measure other[N_COUNTER] = {ETO0(branches), ETO(branches, 3), E(branches), E(instructions)};

static void measure(struct measure *group, const char *name, int times)
{
    measure_group_init(group, (char *)name);
    work(LOOP);
    for (int i = 0; i < times; i++) {
        measure_group_start();
        work(LOOP);
        measure_group_stop();
        work(LOOP);
        measure_group_stop();
    }
    measure_group_finish();
}

static void *in_a_thread(void *unused)
{
    measure(mine, "mine", 3);
    measure_group_init(other, "unfinished");
    measure_group_start();
    return unused;
}

/* What a loop has of an event. */
static double loop(uint64_t config)
{
    struct rdpmc_ctx ctx;
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, config);
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
    const uint64_t before = rdpmc_read(&ctx);
    work(LOOP);
    const uint64_t value = rdpmc_read(&ctx) - before;
    rdpmc_close(&ctx);
    return (double)value;
}

/* The next line is this name with about this number, and a percentage, or none if that is negative. */
static void line_is(FILE *file, const char *name, double value, double percent)
{
    char line[128], found[64];
    double number, share = -1;
    CHECK(fgets(line, sizeof line, file) != NULL);
    const int fields = sscanf(line, "%63s %lf (%lf%%)", found, &number, &share);
    if (fields < 2 || strcmp(found, name) != 0 || number < value - 1000 || number > value + SLACK || line[20] != '\t' ||
        share < percent - 0.5 || share > percent + 0.5 || (percent < 0 && fields != 2))
        FAIL("%s: not %s %.0f %.2f", line, name, value, percent);
}

static void title_is(FILE *file, const char *title)
{
    char line[128];
    CHECK(fgets(line, sizeof line, file) != NULL);
    if (strcmp(line, title) != 0)
        FAIL("%s instead of %s", line, title);
}

int main(void)
{
    pthread_t threads[2];
    FILE *file = tmpfile();
    needs_known_counts();
    CHECK(file != NULL);
    const int next_descriptor = dup(2);
    close(next_descriptor);
    measure(mine, "mine", 4);
    measure(other, NULL, 2);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, in_a_thread, NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(dup(2), next_descriptor); /* threads that have ended have closed theirs */
    close(next_descriptor);
    measure_print_all(file);
    rewind(file);
    const double all = loop(instructions), some = loop(branches);
    CHECK(some > 0.1 * all && some < 0.9 * all);
    title_is(file, "mine:\n");
    line_is(file, "instructions", 10 * all, -1);
    line_is(file, "branches", 10 * some, 100 * some / all);
    line_is(file, "branches", 10 * (all - some), -1);
    title_is(file, ":\n");
    line_is(file, "branches", 2 * some, 100);
    line_is(file, "branches", 2 * some, 100 * some / all);
    line_is(file, "branches", 2 * some, -1);
    line_is(file, "instructions", 2 * all, -1);
    title_is(file, "unfinished:\n");
    for (int i = 0; i < 4; i++)
        line_is(file, i < 3 ? "branches" : "instructions", 0, -1);
    CHECK(fgetc(file) == EOF);
    measure_free_all();
    CHECK_EQ(fseek(file, 0, SEEK_END), 0);
    const long length = ftell(file);
    measure_print_all(file);
    CHECK_EQ(ftell(file), length);
    fclose(file);

    CHECK_EQ(get_interrupts(), 0);
    interrupts_init();
    const uint64_t before = get_interrupts();
    for (int i = 0; i < 20; i++) {
        work(1000000);
        sleep_a_little();
    }
    CHECK(get_interrupts() >= before);
    printf("%llu interrupts\n", get_interrupts());
    interrupts_exit();
    CHECK_EQ(get_interrupts(), 0);
    return 0;
}
