/* paces LENGTH MILLIONS SHAPE FILE: calls half, one, two and four, functions of as many instructions per cycle, in random order, each
 * for LENGTH cycles, MILLIONS of cycles in all, and writes how many of these were each one's. SHAPE: plain; sleeps: every now and then
 * it does so; threads, two of them; half, or four, which alone is called then; half-turns and four-turns: the same for 0.2 to 1.8 LENGTH,
 * then another such program has its turn, to which descriptor 4 leads, and from which 3 does.
 * needs: arguments */
#include "vm/mix.h"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* two instructions a turn */
#define F(name)                                                                                                                \
    static __attribute__((noinline, noclone)) void name(uint64_t turns)                                                        \
    {                                                                                                                          \
        __asm__ volatile("1: dec %0\n jnz 1b # " #name : "+r"(turns) : : "cc");                                                \
    }
F(half) F(one) F(two) F(four)

enum { PACES = 4 };
static const struct pace {
    void (*run)(uint64_t turns);
    double ipc;
    unsigned number; /* of vm_mix_set */
} paces[PACES] = {{half, 0.5, 3}, {one, 1, 0}, {two, 2, 1}, {four, 4, 2}};

static double length, all;
static int sleeps, turns;
static int only = -1; /* of the paces */
static double spent[2][PACES];

struct part {
    uint64_t seed;
    double *spent;
};

/* Until the other one has had its turn, or has ended. */
static void gives(void)
{
    turns = turns && write(4, "", 1) == 1;
}
static void takes(void)
{
    char turn;
    turns = turns && read(3, &turn, 1) == 1;
}

static void *work(void *argument)
{
    const struct part *part = argument;
    uint64_t seed = part->seed;
    double cycles = length;
    for (double done = 0; done < all; done += cycles) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const unsigned k = only < 0 ? (unsigned)(seed >> 40) % PACES : (unsigned)only;
        if (turns)
            cycles = length * (0.2 + 1.6 * (double)(seed >> 40) / (1 << 24));
        if (k)
            takes();
        const struct vm_mix mix = {20, 10, 10, 4, 4, 4, 4};
        vm_mix_set(mix, 0, paces[k].number, 0);
        if (!sleeps)
            paces[k].run((uint64_t)(cycles * paces[k].ipc / 2));
        for (int slice = 0; sleeps && slice < 4; slice++) {
            paces[k].run((uint64_t)(length * paces[k].ipc / 8));
            usleep(100);
        }
        part->spent[k] += cycles;
        if (turns)
            gives();
        if (!k)
            takes();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    length = atof(argv[1]);
    all = atof(argv[2]) * 1e6;
    sleeps = strcmp(argv[3], "sleeps") == 0;
    only = strncmp(argv[3], "half", 4) == 0 ? 0 : strncmp(argv[3], "four", 4) == 0 ? PACES - 1 : -1;
    turns = only >= 0 && strstr(argv[3], "turns") != NULL;
    signal(SIGPIPE, SIG_IGN);
    const int threads = strcmp(argv[3], "threads") == 0 ? 2 : 1;
    pthread_t thread[2];
    struct part parts[2] = {{88172645463325252u, spent[0]}, {88172645463326229u, spent[1]}};
    all /= threads;
    for (int k = 1; k < threads; k++)
        if (pthread_create(&thread[k], NULL, work, &parts[k]))
            return 2;
    work(&parts[0]);
    for (int k = 1; k < threads; k++)
        pthread_join(thread[k], NULL);
    FILE *const file = fopen(argv[4], "w");
    if (file == NULL)
        return 2;
    for (unsigned k = 0; k < PACES; k++)
        fprintf(file, "%.0f\n", spent[0][k] + spent[1][k]);
    return fclose(file) != 0;
}
