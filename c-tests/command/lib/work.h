/* work.h: calls of functions with known mixes in random order, which are counted. */
#ifndef WORK_H
#define WORK_H
#include "functions.h"
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* two instructions a turn */
#if defined(__aarch64__)
#define TURN_OF_TWO "1: subs %0, %0, #1\n b.ne 1b //"
#else
#define TURN_OF_TWO "1: dec %0\n jnz 1b #"
#endif
#define F(n)                                                                                                                   \
    static __attribute__((noinline, noclone)) void f##n(uint64_t turns)                                                        \
    {                                                                                                                          \
        __asm__ volatile(TURN_OF_TWO " " #n : "+r"(turns) : : "cc");                                                          \
    }
#define TEN(F, t) F(t##0) F(t##1) F(t##2) F(t##3) F(t##4) F(t##5) F(t##6) F(t##7) F(t##8) F(t##9)
#define HUNDRED(F, h) TEN(F, h##0) TEN(F, h##1) TEN(F, h##2) TEN(F, h##3) TEN(F, h##4) TEN(F, h##5) TEN(F, h##6) TEN(F, h##7) TEN(F, h##8) TEN(F, h##9)
#define ALL(F)                                                                                                                 \
    TEN(F, ) TEN(F, 1) TEN(F, 2) TEN(F, 3) TEN(F, 4) TEN(F, 5) TEN(F, 6) TEN(F, 7) TEN(F, 8) TEN(F, 9)                         \
    HUNDRED(F, 1) HUNDRED(F, 2) HUNDRED(F, 3)
ALL(F)
#define NAME(n) f##n,
static void (*const functions[MOST_FUNCTIONS])(uint64_t) = {ALL(NAME)};

static void (*const *table)(uint64_t) = functions;

static unsigned count;
static uint64_t length;
static int noise = -1, partner = -1;
static int uneven; /* it sleeps after each function in the first half alone, which is of other functions than the second */
static uint64_t calls; /* of the system after each function */
static double sleeps; /* how often */
static unsigned sleep_us;
static unsigned handlers; /* are the last of the functions */
static unsigned other; /* mixes */
static volatile unsigned running; /* the function whose mix it is */

struct part {
    uint64_t instructions, seed;
    double *spent;
};

static double random_part(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (double)(*seed >> 11) * 0x1p-53;
}

/* Instructions of a system call, each of which takes a nanosecond on the emulated machine. */
static double of_kernel(void)
{
    static char bytes[1 << 20];
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (read(noise, bytes, length / 16 < sizeof bytes ? length / 16 : sizeof bytes) < 0) /* some 16 instructions a byte */
        exit(2);
    clock_gettime(CLOCK_MONOTONIC, &to);
    return 1e9 * (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec);
}

/* This thread's code divides as that function's from now on. */
static inline void runs_as(unsigned k)
{
    const struct vm_mix mix = mix_of_function(k);
#if defined(__aarch64__)
    /* (a number of its own for each: those of vm_mix_set are others' when a thread comes back that did not run for long) */
    const uint64_t phase = 6 + k % 240;
    vm_phase_define(phase, mix.retiring, mix.bad, mix.frontend, mix.mispredicts, mix.latency, mix.memory, 4, 4, 4);
    vm_phase_set(phase);
#else
    vm_mix_set(mix, 0, 0, 0);
#endif
}

/* Nanoseconds of so many instructions of that mix, by the recorder's clock, which counts cycles. (On the emulated arm64 a mix changes an instruction's
 * cycles, not its time; a cycle is taken to last as long as in the mix that threads begin with, of which 26 slots of 64 are retired) */
static double clocked(unsigned k, uint64_t instructions)
{
#if defined(__aarch64__)
    return (double)instructions * 26 / mix_of_function(k).retiring; /* (a core's slots per cycle are the same for all) */
#else
    (void)k;
    return (double)instructions;
#endif
}

/* Four instructions each. */
static __attribute__((noinline, noclone)) void system_calls(uint64_t calls)
{
#if defined(__aarch64__)
    __asm__ volatile("mov x8, #172\n 1: svc #0\n nop\n subs %0, %0, #1\n b.ne 1b" : "+r"(calls) : : "x0", "x8", "cc", "memory");
#else
    __asm__ volatile("1: mov $39, %%eax\n syscall\n dec %0\n jnz 1b" : "+r"(calls) : : "rax", "rcx", "r11", "cc", "memory");
#endif
}

static __attribute__((noinline, noclone)) void *work(void *argument)
{
    struct part *part = argument;
    char turn;
    for (uint64_t done = 0; done < part->instructions;) {
        const unsigned from = uneven && done >= part->instructions / 2 ? count / 2 : 0;
        const unsigned k = from + (unsigned)(random_part(&part->seed) * (uneven ? count / 2 : count - handlers));
        const uint64_t turns = (uint64_t)((double)length * (0.2 + 1.6 * random_part(&part->seed))) / 2 + 1;
        runs_as(running = k + other);
        table[k](turns);
        part->spent[k] += clocked(running, 2 * turns);
        done += 2 * turns;
        if (noise >= 0)
            part->spent[count] += of_kernel();
        if (calls > 0) {
            system_calls(calls);
            part->spent[count] += clocked(running, 4 * calls);
        }
        if (partner >= 0 && (send(partner, "", 1, MSG_NOSIGNAL) != 1 || recv(partner, &turn, 1, 0) != 1))
            partner = -1; /* it has ended */
        if (uneven && from == 0)
            usleep(200);
        if (sleeps > 0 && random_part(&part->seed) < sleeps)
            usleep(sleep_us);
    }
    return NULL;
}
#endif
