/* Readings of real counters write nothing that threads share; and hardly ever to their own handle: after a context
 * switch. */
#include "pmu.h"
#define OPEN() measured(NULL)
#define READINGS 250000
#define MAIN
#include "read_only.c"
#include <sys/resource.h>

static td_t *own;
static volatile sig_atomic_t writes;

static void count_write(int signal, siginfo_t *info, void *unused)
{
    if ((char *)info->si_addr < (char *)own || (char *)info->si_addr >= (char *)own + PAGE)
        wrote(signal, info, unused);
    writes = writes + 1;
    if (mprotect(own, PAGE, PROT_READ | PROT_WRITE) != 0)
        _exit(1);
}

static long switches(void)
{
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

int main(void)
{
    struct td_options options = options_of(0, 0);
    struct td_sample sample;
    struct sigaction action;
    options.max_error_ppm = 1000000; /* no windows */
    own = measured(&options);
    if (info_of(own).path != TD_PATH_RDPMC)
        SKIP("no RDPMC: %s", info_of(own).note);
    td_close(own);
    together();
    own = measured(&options);

    memset(&action, 0, sizeof action);
    action.sa_sigaction = count_write;
    action.sa_flags = SA_SIGINFO;
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    td_must(td_reset(own));
    td_must(td_read(own, &sample));
    const long before = switches();
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(mprotect(own, PAGE, PROT_READ), 0);
        for (int k = 0; k < 1000; k++)
            td_must(td_read(own, &sample));
    }
    printf("%d writes, %ld switches\n", (int)writes, switches() - before);
    CHECK(writes <= switches() - before + 16); /* once in many slots a reading takes the slow path, too */
    td_close(own);
    return 0;
}
