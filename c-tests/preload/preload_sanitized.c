/* ThreadSanitizer finds no race in a measured program that has none, nor any other fault, and the program ends as it would: with regions
 * or without, in threads, forked children and programs that are executed. (It is built with -fsanitize=thread.) */
#include "preload.h"

static void *regions(void *unused)
{
    for (int k = 0; k < 300; k++) {
        td_region_begin("a");
        char *memory = malloc((size_t)(100 + k));
        memset(memory, 1, (size_t)(100 + k));
        td_region_begin("b");
        free(memory);
        td_region_end("b");
        td_region_end("a");
    }
    return unused;
}
static void *nothing(void *unused)
{
    for (volatile int k = 0; k < 30000; k++)
        ;
    return unused;
}

static void threads(void *(*work)(void *))
{
    for (int round = 0; round < 3; round++) {
        pthread_t all[4];
        for (int k = 0; k < 4; k++)
            all[k] = start_thread(work, NULL);
        for (int k = 0; k < 4; k++)
            join_thread(all[k]);
    }
}

static int in_threads(void)
{
    threads(regions);
    return 0;
}
static void in_threads_report(const char *csv) { EXECUTED(csv, "a", 3 * 4 * 300); }

static int in_children(void)
{
    threads(nothing);
    for (int k = 0; k < 3; k++) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            threads(k ? regions : nothing);
            if (k == 2)
                execl("/bin/true", "true", NULL);
            exit(3);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, k == 2 ? 0 : 3 << 8);
    }
    threads(nothing);
    return 0;
}
static void in_children_report(const char *csv) { EXECUTED(csv, "b", 2 * 3 * 4 * 300); }

static const struct preload_case CASES[] = {
    {"threads", in_threads, in_threads_report, NULL},
    {"children", in_children, in_children_report, NULL},
};
PRELOAD_MAIN(CASES)
