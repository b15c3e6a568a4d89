/* storms SHAPE FILE: programs that come and go in ways that are hard to follow. All call functions with known mixes in random order, and add to
 * FILE (storms.h) how long each took. SHAPE: threads, 300 of them, four at a time; crowd, 300 at once, which begin when all have been there for a second; relay, the
 * same, but two run at a time, each in a function of its own, and then two others; forks, 60 processes, four at a time, every other one of which executes this program (part); library, two libraries one after the other, which may come to
 * lie at the same addresses, with functions of other names; jit, code in memory that is no file's, with a map for perf; plain. Each ends with
 * a status of its own. */
#define _GNU_SOURCE
#include "storms.h"
#include "work.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct storm *storm;
static char *const *arguments;

static void must(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    _exit(99);
}

/* Calls functions for so many instructions, as this seed chooses them. */
static void call(uint64_t instructions, unsigned number)
{
    double spent[STORM_FUNCTIONS] = {0};
    struct part part = {instructions, 88172645463325252u + 977u * number, spent};
    work(&part);
    for (int k = 0; k < STORM_FUNCTIONS; k++)
        __atomic_fetch_add(&storm->spent[k], (uint64_t)spent[k], __ATOMIC_RELAXED);
}

/* The CPU time of this process so far. */
static void add_cpu_time(void)
{
    struct timespec spent;
    must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) == 0, "clock_gettime");
    __atomic_fetch_add(&storm->cpu_ns, (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec, __ATOMIC_RELAXED);
}

static void *in_thread(void *number)
{
    call(STORM_OF_THREAD, (unsigned)(uintptr_t)number);
    return NULL;
}

static int threads(void)
{
    enum { AT_ONCE = 4 };
    pthread_t thread[AT_ONCE];
    for (unsigned k = 0; k < STORM_THREADS; k++) {
        if (k >= AT_ONCE)
            pthread_join(thread[k % AT_ONCE], NULL);
        must(pthread_create(&thread[k % AT_ONCE], NULL, in_thread, (void *)(uintptr_t)k) == 0, "pthread_create");
    }
    for (int k = 0; k < AT_ONCE; k++)
        pthread_join(thread[k], NULL);
    return 21;
}

static pthread_barrier_t all_are_there;
static void *in_crowd(void *number)
{
    pthread_barrier_wait(&all_are_there);
    return in_thread(number);
}

static int crowd(void)
{
    static pthread_t thread[STORM_THREADS];
    pthread_barrier_init(&all_are_there, NULL, STORM_THREADS + 1);
    for (unsigned k = 0; k < STORM_THREADS; k++)
        must(pthread_create(&thread[k], NULL, in_crowd, (void *)(uintptr_t)k) == 0, "pthread_create");
    sleep(1);
    pthread_barrier_wait(&all_are_there);
    for (int k = 0; k < STORM_THREADS; k++)
        pthread_join(thread[k], NULL);
    return 22;
}

static sem_t turn_of[STORM_THREADS];
static pthread_mutex_t relay_lock = PTHREAD_MUTEX_INITIALIZER;
static int waits[STORM_THREADS], legs = RELAY_LEGS;

/* Another thread's turn, any that waits; when no legs are left, everybody's, to end. */
static int hand_on(void)
{
    static uint64_t seed = 88172645463325252u;
    pthread_mutex_lock(&relay_lock);
    const int left = legs > 0 ? legs-- : 0;
    for (int chosen = 0; left > 0 && !chosen;) {
        const unsigned k = (unsigned)(random_part(&seed) * STORM_THREADS);
        if ((chosen = waits[k])) {
            waits[k] = 0;
            sem_post(&turn_of[k]);
        }
    }
    for (int k = 0; left == 0 && k < STORM_THREADS; k++)
        sem_post(&turn_of[k]);
    pthread_mutex_unlock(&relay_lock);
    return left;
}

static void *in_relay(void *number)
{
    const unsigned thread = (unsigned)(uintptr_t)number, k = thread % STORM_FUNCTIONS;
    pthread_barrier_wait(&all_are_there);
    do {
        pthread_mutex_lock(&relay_lock);
        const int left = legs;
        waits[thread] = 1;
        pthread_mutex_unlock(&relay_lock);
        if (left > 0)
            sem_wait(&turn_of[thread]);
        if (waits[thread]) /* (there were no legs left) */
            break;
        for (uint64_t done = 0; done < RELAY_OF[k]; done += STORM_LENGTH) {
            runs_as(k);
            table[k](STORM_LENGTH / 2);
        }
        __atomic_fetch_add(&storm->spent[k], (uint64_t)clocked(k, RELAY_OF[k]), __ATOMIC_RELAXED);
    } while (hand_on() > 0);
    return NULL;
}

static int relay(void)
{
    static pthread_t thread[STORM_THREADS];
    pthread_barrier_init(&all_are_there, NULL, STORM_THREADS + 1);
    for (unsigned k = 0; k < STORM_THREADS; k++) {
        sem_init(&turn_of[k], 0, 0);
        must(pthread_create(&thread[k], NULL, in_relay, (void *)(uintptr_t)k) == 0, "pthread_create");
    }
    pthread_barrier_wait(&all_are_there);
    sleep(1);
    hand_on();
    hand_on();
    for (int k = 0; k < STORM_THREADS; k++)
        pthread_join(thread[k], NULL);
    return 27;
}

static int part(void)
{
    call(STORM_OF_PROCESS, (unsigned)getpid());
    add_cpu_time();
    return 0;
}

static int forks(void)
{
    static char *again[] = {NULL, "part", NULL, NULL};
    again[0] = arguments[0], again[2] = arguments[2];
    for (int k = 0; k < STORM_FORKS; k++) {
        const pid_t child = fork();
        must(child >= 0, "fork");
        if (child == 0) {
            if (k % 2)
                _exit(part());
            execv("/proc/self/exe", again);
            _exit(98);
        }
        int status = 0;
        if (k % 4 == 3)
            while (wait(&status) > 0)
                must(status == 0, "a child");
    }
    return 23;
}

/* The work in the functions of a library, which is gone afterwards. */
static void in_library(const char *name, char first)
{
    static void (*functions_of_it[STORM_FUNCTIONS])(uint64_t);
    char path[PATH_MAX + 64];
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    must(length > 0, "readlink");
    path[length] = 0;
    dirname(path);
    strcat(strcat(path, "/"), name);
    void *const library = dlopen(path, RTLD_NOW);
    must(library != NULL, path);
    for (int k = 0; k < STORM_FUNCTIONS; k++) {
        const char symbol[3] = {first, (char)('0' + k), 0};
        *(void **)&functions_of_it[k] = dlsym(library, symbol);
        must(functions_of_it[k] != NULL, symbol);
    }
    table = functions_of_it;
    call(STORM_WHOLE, (unsigned)first);
    dlclose(library);
}

static int library(void)
{
    in_library("libstorm-g.so", 'g');
    in_library("libstorm-h.so", 'h');
    return 24;
}

/* What a JIT compiler does: a loop of two instructions for each function, and a line of the map. */
static int jit(void)
{
#if defined(__aarch64__)
    static const uint32_t code[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0}; /* subs x0, x0, #1; b.ne -4; ret */
#else
    static const uint8_t code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; /* dec %rdi; jnz -5; ret */
#endif
    enum { APART = 64 };
    static void (*made[STORM_FUNCTIONS])(uint64_t);
    char path[64];
    char *const memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(memory != MAP_FAILED, "mmap");
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *const map = fopen(path, "w");
    must(map != NULL, path);
    for (int k = 0; k < STORM_FUNCTIONS; k++) {
        memcpy(memory + k * APART, code, sizeof code);
        made[k] = (void (*)(uint64_t))(uintptr_t)(memory + k * APART);
        fprintf(map, "%lx %zx j%d\n", (unsigned long)(uintptr_t)(memory + k * APART), sizeof code, k);
    }
    must(fclose(map) == 0, path);
    must(mprotect(memory, 4096, PROT_READ | PROT_EXEC) == 0, "mprotect");
    __builtin___clear_cache(memory, memory + 4096);
    table = made;
    call(STORM_WHOLE, 7);
    return 25;
}

static int plain(void)
{
    call(STORM_WHOLE, 7);
    return 26;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*program)(void);
    } all[] = {{"threads", threads}, {"crowd", crowd}, {"relay", relay}, {"forks", forks}, {"part", part}, {"library", library}, {"jit", jit}, {"plain", plain}};
    arguments = argv;
    count = STORM_FUNCTIONS;
    length = STORM_LENGTH;
    const int file = argc == 3 ? open(argv[2], O_RDWR) : -1;
    must(file >= 0, "FILE");
    storm = mmap(NULL, sizeof *storm, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(storm != MAP_FAILED, "mmap of FILE");
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        if (strcmp(argv[1], all[k].name) == 0) {
            const int status = all[k].program();
            if (status != 0) /* (those that return 0 have added it) */
                add_cpu_time();
            printf("%s has ended\n", argv[1]);
            return status;
        }
    }
    return 97;
}
