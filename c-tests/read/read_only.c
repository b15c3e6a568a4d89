/* Readings write nothing that threads share: they go on while the library's own data are write-protected, and so are the
 * handles of other threads. */
#include "check.h"
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_read_only.c has another */
#define READINGS 250000
#endif

enum { READERS = 4, PAGE = 4096 }; /* a handle: what readings need, the control page, and the rest */
static td_t *handle[READERS];
static pthread_barrier_t barrier;

static int protect_if_library(struct dl_phdr_info *object, size_t unused, void *protection)
{
    int count = 0;
    (void)unused;
    if (strstr(object->dlpi_name, "libtopdown.so") == NULL)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) / PAGE * PAGE;
        const uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
            continue;
        CHECK_EQ(mprotect((void *)begin, end - begin, *(int *)protection), 0);
        count++;
    }
    return count;
}

/* Protects, or not, what may be written of the library; how many stretches that are. */
static int protect_library(int protection) { return dl_iterate_phdr(protect_if_library, &protection); }

/* The pages of a handle that are not the control page. */
static void protect_handle(td_t *td, int protection)
{
    CHECK_EQ(mprotect(td, PAGE, protection), 0);
    CHECK_EQ(mprotect((char *)td + 2 * PAGE, PAGE, protection), 0);
}

static void *reader(void *argument)
{
    const int number = (int)(intptr_t)argument;
    struct td_sample first, last, now;
    struct td_l1 l1;
    handle[number] = OPEN();
    td_must(td_read(handle[number], &first));
    pthread_barrier_wait(&barrier); /* all are open */
    pthread_barrier_wait(&barrier); /* all is protected */
    last = first;
    for (long i = repeats(READINGS); i > 0; i--) {
        td_must(td_read(handle[number], &now));
        CHECK(now.slots >= last.slots);
        last = now;
    }
    td_must(td_decode_l1(&first, &now, &l1));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* nothing is protected any more */
    td_close(handle[number]);
    return NULL;
}

static void wrote(int signal, siginfo_t *info, void *unused)
{
    (void)signal, (void)unused;
    char text[128];
    const int length = snprintf(text, sizeof text, "somebody wrote to %p, which threads share\n", info->si_addr);
    (void)!write(STDERR_FILENO, text, (size_t)length);
    _exit(1);
}

static void watch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = wrote;
    action.sa_flags = SA_SIGINFO;
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
}

static void together(void)
{
    pthread_t thread[READERS];
    td_t *idle = OPEN();
    watch();
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, READERS + 1), 0);
    for (int i = 0; i < READERS; i++)
        thread[i] = start_thread(reader, (void *)(intptr_t)i);
    pthread_barrier_wait(&barrier);
    CHECK(protect_library(PROT_READ) > 0);
    protect_handle(idle, PROT_READ);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    protect_library(PROT_READ | PROT_WRITE);
    protect_handle(idle, PROT_READ | PROT_WRITE);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < READERS; i++)
        join_thread(thread[i]);
    td_close(idle);
}

#ifndef MAIN
int main(void)
{
    together();
    return 0;
}
#endif
