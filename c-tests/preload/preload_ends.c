/* However a program ends, it ends as without the library, and what it had done until then is in the table. */
#include "preload.h"

/* What there is to know before the end. */
static void before(void)
{
    puts("begun");
    fflush(stdout);
    region("done", 1000);
    td_region_begin("open");
}

static void all_done(const char *csv)
{
    EXECUTED(csv, "done", 1000);
}

static int returns(void) { before(); return 3; }
static int exits(void) { before(); exit(4); }
static int quick_exits(void) { before(); quick_exit(5); }
static int immediately(void) { before(); _exit(6); }
static int Immediately(void) { before(); _Exit(7); }
static int aborts(void) { before(); abort(); }
#if defined(__x86_64__)
#define UNDEFINED "ud2"
#else
#define UNDEFINED ".inst 0" /* udf */
#endif
static int faults(void) { before(); __asm__ volatile(UNDEFINED); return 1; }
static volatile uintptr_t nowhere = 8;
static int segfaults(void) { before(); *(volatile int *)nowhere = 1; return 1; }
static int terminated(void) { before(); raise(SIGTERM); return 1; }
static int killed(void) { before(); raise(SIGKILL); return 1; }

static void again(void)
{
    region("at exit", 2);
    exit(8);
}
static int exits_at_exit(void) { before(); atexit(again); exit(9); }

static void on_term(int signal)
{
    (void)signal;
    exit(10);
}
static int exits_in_handler(void) { before(); signal(SIGTERM, on_term); raise(SIGTERM); return 1; }

static void *ends_all(void *unused) { region("done", 1000); exit(11); return unused; }
static int exits_in_a_thread(void) { join_thread(start_thread(ends_all, NULL)); return 1; }

/* Main ends, a thread goes on. */
static pthread_t the_main;
static void *goes_on(void *unused)
{
    CHECK_EQ(pthread_join(the_main, NULL), 0);
    pthread_t later = start_thread((void *(*)(void *))(void (*)(void))before, NULL);
    CHECK_EQ(pthread_join(later, NULL), 0);
    exit(12);
    return unused;
}
static int main_ends_first(void) { the_main = pthread_self(); start_thread(goes_on, NULL); pthread_exit(NULL); }

/* A detached thread works until the end. */
static void *works(void *unused)
{
    for (;;)
        region("detached", 1);
    return unused;
}
static int leaves_a_thread(void)
{
    pthread_detach(start_thread(works, NULL));
    before();
    return 13;
}

static int execs(void) { before(); execl("/bin/sh", "sh", "-c", "echo another; exit 14", NULL); return 1; }
static int fails_to_exec(void)
{
    region("done", 500);
    CHECK_EQ(execl("/nowhere/to/be/found", "x", NULL), -1);
    CHECK_EQ(errno, ENOENT);
    region("done", 500);
    return 15;
}

static void __attribute__((constructor)) early(void) { region("constructor", 1); }
static void __attribute__((destructor)) late(void) { region("destructor", 1); }

static void report_of_exit(const char *csv)
{
    all_done(csv);
    EXECUTED(csv, "open", 0); /* it never ended, and how it would have is not known */
    CHECK_EQ(figure(csv, "open", "unended"), 1);
    EXECUTED(csv, "at exit", -1);
    EXECUTED(csv, "constructor", 1);
    EXECUTED(csv, "destructor", 1);
}
static void report_of_exits(const char *csv)
{
    all_done(csv);
    EXECUTED(csv, "at exit", 2);
}
static void report_of_exec(const char *csv)
{
    all_done(csv);
    CHECK_EQ(figure(csv, "open", "executions"), 0);
}

static const struct preload_case CASES[] = {
    {"return", returns, report_of_exit, NULL}, {"exit", exits, report_of_exit, NULL}, {"quick_exit", quick_exits, all_done, NULL},
    {"_exit", immediately, all_done, NULL}, {"_Exit", Immediately, all_done, NULL}, {"abort", aborts, all_done, NULL},
    {"SIGILL", faults, all_done, NULL}, {"SIGSEGV", segfaults, all_done, NULL}, {"SIGTERM", terminated, all_done, NULL}, {"SIGKILL", killed, all_done, NULL},
    {"exit at exit", exits_at_exit, report_of_exits, NULL}, {"exit in a handler", exits_in_handler, all_done, NULL},
    {"exit in a thread", exits_in_a_thread, all_done, NULL}, {"main ends first", main_ends_first, all_done, NULL},
    {"a thread is left", leaves_a_thread, all_done, NULL}, {"exec", execs, report_of_exec, NULL}, {"no exec", fails_to_exec, all_done, NULL},
};
PRELOAD_MAIN(CASES)
