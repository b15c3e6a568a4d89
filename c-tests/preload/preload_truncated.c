/* A table file that is truncated while its program runs: the program goes on and ends as without the library. And SIGBUS
 * is the program's own, as without. */
#include "preload.h"
#include <setjmp.h>
#include <sys/mman.h>

/* The table file of this process, as its map of memory has it. */
static int table(char *path)
{
    char line[PATH_MAX + 200];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (!found && fgets(line, sizeof line, maps)) {
        char *name = strchr(line, '/');
        line[strcspn(line, "\n")] = 0;
        found = name && strstr(name, ".topdown") == name + strlen(name) - strlen(".topdown");
        if (found)
            strcpy(path, name);
    }
    fclose(maps);
    return found;
}

static void *in_thread(void *unused) { region("thread", 10); return unused; }

static void goes_on(void)
{
    char name[40];
    for (int k = 0; k < 200; k++) {
        snprintf(name, sizeof name, "new %d", k);
        region(name, 1);
        region("known", 10);
    }
    join_thread(start_thread(in_thread, NULL));
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        region("child", 10);
        exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 3 << 8);
}

/* Truncates it within a region, to this length; then is it made longer again, and truncated again. */
static int truncates(off_t length)
{
    char path[PATH_MAX + 200] = "";
    td_region_begin("outer");
    region("known", 1000);
    CHECK(table(path) || !preloaded());
    CHECK(!preloaded() || truncate(path, length) == 0);
    goes_on();
    CHECK(!preloaded() || (truncate(path, 1 << 20) == 0 && truncate(path, length) == 0));
    goes_on();
    td_region_end("outer");
    puts("done");
    return 6;
}
static int to_nothing(void) { return truncates(0); }
static int to_a_part_of_the_header(void) { return truncates(100); }
static int to_the_header(void) { return truncates(4096); }
static int to_some_records(void) { return truncates(3 * 4096); }

/* At any moment, by a thread, while others begin and end; at last to the header, after which they go on for a while. */
static volatile int enough;
static void *truncates_often(void *path)
{
    for (int k = 0; k <= 2000; k++)
        truncate(path, k % 2 ? 40 * 4096 : k % 3 * 2048);
    enough = 1;
    return NULL;
}
static void *measures(void *unused)
{
    char name[40];
    for (int k = 0, more = 100; more > 0; more -= enough, k++) {
        snprintf(name, sizeof name, "%d", k % 3000);
        region(name, 1);
    }
    return unused;
}
static int often(void)
{
    char path[PATH_MAX + 200] = "/nowhere";
    pthread_t threads[4];
    region("known", 1);
    CHECK(table(path) || !preloaded());
    threads[0] = start_thread(truncates_often, path);
    for (int k = 1; k < 4; k++)
        threads[k] = start_thread(measures, NULL);
    for (int k = 0; k < 4; k++)
        join_thread(threads[k]);
    return 6;
}

/* A page of the program's own that is beyond its file's end. */
static volatile char *beyond(void)
{
    char path[PATH_MAX + 10];
    snprintf(path, sizeof path, "%s/own", preload_scratch);
    const int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(fd >= 0 && page != MAP_FAILED);
    close(fd);
    return page;
}
static int own_fault(void) { *beyond() = 1; return 6; }
static int sent(void) { raise(SIGBUS); return 6; }
static sigjmp_buf back;
static void leaves(int signal, siginfo_t *info, void *context)
{
    (void)context;
    printf("signal %d, code %d\n", signal, info->si_code);
    siglongjmp(back, 1);
}
static void handle(void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGBUS, &action, NULL), 0);
}
static int own_handler(void)
{
    handle(leaves);
    if (sigsetjmp(back, 1) == 0)
        *beyond() = 1;
    if (sigsetjmp(back, 1) == 0)
        raise(SIGBUS);
    region("known", 10);
    return 6;
}
static int ignored(void)
{
    signal(SIGBUS, SIG_IGN);
    raise(SIGBUS);
    region("known", 10);
    return 6;
}

#define LOST "truncated while the program ran"

static const struct preload_case CASES[] = {
    {"to nothing", to_nothing, NULL, LOST}, {"to a part of the header", to_a_part_of_the_header, NULL, LOST},
    {"to the header", to_the_header, NULL, LOST}, {"to some records", to_some_records, NULL, LOST}, {"often", often, NULL, LOST},
    {"own fault", own_fault, NULL, NULL}, {"sent", sent, NULL, NULL}, {"own handler", own_handler, NULL, NULL},
    {"ignored", ignored, NULL, NULL},
};
PRELOAD_MAIN(CASES)
