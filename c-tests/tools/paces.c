/* paces LENGTH MILLIONS SHAPE FILE: calls half, one, two and four, functions of as many instructions per cycle, in random order, each
 * for LENGTH cycles, MILLIONS of cycles in all, and writes how many of these were each one's. SHAPE: plain; sleeps: every now and then
 * it does so; threads, two of them.
 * needs: arguments */
#include "vm/mix.h"
#include <pthread.h>
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
static int sleeps;
static double spent[2][PACES];

struct part {
    uint64_t seed;
    double *spent;
};

static void *work(void *argument)
{
    const struct part *part = argument;
    uint64_t seed = part->seed;
    for (double done = 0; done < all; done += length) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const unsigned k = (unsigned)(seed >> 40) % PACES;
        const struct vm_mix mix = {20, 10, 10, 4, 4, 4, 4};
        vm_mix_set(mix, 0, paces[k].number, 0);
        if (!sleeps)
            paces[k].run((uint64_t)(length * paces[k].ipc / 2));
        for (int slice = 0; sleeps && slice < 4; slice++) {
            paces[k].run((uint64_t)(length * paces[k].ipc / 8));
            usleep(100);
        }
        part->spent[k] += length;
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
