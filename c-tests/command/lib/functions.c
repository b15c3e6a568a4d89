/* functions FUNCTIONS MEAN_LENGTH MILLIONS SHAPE FILE: calls functions with known mixes in random order, each for 0.2 to 1.8 times
 * MEAN_LENGTH instructions, MILLIONS of them in all, and writes how many millionths of their cycles were each one's. SHAPE: plain; threads,
 * three of them, or children, each a third; late: in a process that has executed this program; sleeps: it does so every now and then, naps: after each function, for a millisecond;
 * uneven: in the first half one half of the functions run, with a short sleep after each, in the second the others, without;
 * other: plain with other mixes; reads: after each function the kernel makes random bytes for some as many instructions as the functions have on average:
 * these are in the file, too, behind those of the functions; calls: after each function there are a hundred system calls, and the part of the
 * function that makes them is in the file, too; turns and other-turns: plain and other, but after each function
 * it is another program's turn, which has the other end of descriptor 3 (a pair of sockets) and runs on the same CPU; timers=US,US: plain, but
 * the last function is the handler of two timers' signals, each after so many microseconds of real time, for MEAN_LENGTH instructions. */
#include "work.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static double spent[3][MOST_FUNCTIONS + 1];

static void in_threads(struct part *parts)
{
    pthread_t threads[3];
    for (int k = 0; k < 3; k++)
        if (pthread_create(&threads[k], NULL, work, &parts[k]))
            exit(2);
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
}

static void in_children(struct part *parts)
{
    int ends[2];
    if (pipe(ends))
        exit(2);
    for (int k = 0; k < 3; k++)
        if (fork() == 0) {
            work(&parts[k]);
            _exit(write(ends[1], parts[k].spent, sizeof spent[0]) != sizeof spent[0]);
        }
    for (int k = 0; k < 3; k++)
        if (read(ends[0], spent[k], sizeof spent[k]) != sizeof spent[k] || wait(NULL) < 0)
            exit(2);
}

/* Signals do not interrupt each other's handlers. */
static double handled;
static void handler(int number)
{
    (void)number;
    runs_as(count - 1);
    table[count - 1](length / 2);
    handled += clocked(count - 1, length / 2 * 2);
    runs_as(running);
}

static void begin_timers(const char *intervals)
{
    unsigned us[2];
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    if (sscanf(intervals, "%u,%u", &us[0], &us[1]) != 2 || sigaction(SIGALRM, &action, NULL))
        exit(2);
    for (int k = 0; k < 2; k++) {
        const struct timespec time = {.tv_sec = us[k] / 1000000, .tv_nsec = us[k] % 1000000 * 1000L};
        const struct itimerspec both = {time, time};
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
        timer_t timer;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &both, NULL))
            exit(2);
    }
    handlers = 1;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    const char *const shape = argv[4];
    if (strcmp(shape, "late") == 0) {
        argv[4] = "plain";
        execv("/proc/self/exe", argv);
        return 2;
    }
    count = (unsigned)strtoul(argv[1], NULL, 0);
    length = strtoull(argv[2], NULL, 0);
    if (strcmp(shape, "sleeps") == 0)
        sleeps = 0.02, sleep_us = 300;
    uneven = strcmp(shape, "uneven") == 0;
    if (strcmp(shape, "naps") == 0)
        sleeps = 1, sleep_us = 1000;
    other = strncmp(shape, "other", 5) == 0 ? OTHER_MIXES : 0;
    if (strstr(shape, "turns"))
        partner = 3;
    if (strcmp(shape, "reads") == 0)
        noise = open("/dev/urandom", O_RDONLY);
    if (strcmp(shape, "calls") == 0)
        calls = 100;
    if (strncmp(shape, "timers=", 7) == 0)
        begin_timers(shape + 7);
    const unsigned lines = count + (noise >= 0 || calls > 0);
    const uint64_t all = strtoull(argv[3], NULL, 0) * 1000000;
    struct part parts[3];
    for (int k = 0; k < 3; k++)
        parts[k] = (struct part){all / 3, 88172645463325252u + 977u * (unsigned)k, spent[k]};
    if (strcmp(shape, "threads") == 0)
        in_threads(parts);
    else if (strcmp(shape, "children") == 0)
        in_children(parts);
    else {
        parts[0].instructions = all;
        work(&parts[0]);
    }
    signal(SIGALRM, SIG_IGN);
    spent[0][count - 1] += handled;
    double total = 0;
    for (unsigned k = 0; k < 3 * lines; k++)
        total += spent[k / lines][k % lines];
    FILE *const file = fopen(argv[5], "w");
    if (file == NULL)
        return 2;
    for (unsigned k = 0; k < lines; k++)
        fprintf(file, "%.0f\n", 1e6 * (spent[0][k] + spent[1][k] + spent[2][k]) / total);
    return fclose(file) != 0;
}
