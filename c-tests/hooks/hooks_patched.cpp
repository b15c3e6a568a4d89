/* Functions within a program that was built as usual (TOPDOWN_FUNCTIONS): each call of them is measured, and the program does what it
 * does without: registers, exceptions, longjmp, recursion, tail calls, threads, signal handlers, functions of a library by its name. */
#include "hooks.h"
#include "lib/hooked.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdexcept>
#include <string>

#define OWN static __attribute__((noinline, noclone))

#ifdef __x86_64__
/* Leaves all registers alone but rax: its callers may know. */
OWN long my_leaf(long x)
{
    asm volatile("" : "+r"(x));
    return 2 * x + 1000;
}

/* Calls it with a value of its own in each register that calls do not preserve, and asks for them again. */
static __attribute__((noinline)) void registers()
{
    struct {
        unsigned long before[8], after[8];
        double vector[2], vector_after[2];
        long (*function)(long);
    } all = {{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88}, {}, {1.5, 2.5}, {}, my_leaf};
    asm volatile("mov %0, %%r12\n\tmov %%rsp, %%r13\n\tsub $128, %%rsp\n\tand $-16, %%rsp\n\tmovupd 128(%%r12), %%xmm9\n\t"
                 "mov 0(%%r12), %%rcx\n\tmov 8(%%r12), %%rdx\n\tmov 16(%%r12), %%rsi\n\tmov 24(%%r12), %%r8\n\t"
                 "mov 32(%%r12), %%r9\n\tmov 40(%%r12), %%r10\n\tmov 48(%%r12), %%r11\n\tmov 56(%%r12), %%rdi\n\t"
                 "call *160(%%r12)\n\t"
                 "mov %%rcx, 64(%%r12)\n\tmov %%rdx, 72(%%r12)\n\tmov %%rsi, 80(%%r12)\n\tmov %%r8, 88(%%r12)\n\t"
                 "mov %%r9, 96(%%r12)\n\tmov %%r10, 104(%%r12)\n\tmov %%r11, 112(%%r12)\n\tmov %%rdi, 120(%%r12)\n\t"
                 "movupd %%xmm9, 144(%%r12)\n\tmov %%r13, %%rsp"
                 :
                 : "r"(&all)
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "xmm9", "memory", "cc");
    all.after[7] = 0x88; /* (its argument, which it may change) */
    CHECK(memcmp(all.before, all.after, sizeof all.before) == 0);
    CHECK(memcmp(all.vector, all.vector_after, sizeof all.vector) == 0);
}
#else
static void registers() {}
#endif

OWN int my_deep(int n)
{
    if (n == 0)
        throw std::runtime_error("deep");
    std::string kept(static_cast<size_t>(n) + 20, 'x'); /* (has to be destroyed) */
    return my_deep(n - 1) + static_cast<int>(kept.size());
}

OWN int my_catcher(int n)
{
    try {
        return my_deep(n);
    } catch (const std::runtime_error &error) {
        return error.what() == std::string("deep");
    }
}

static jmp_buf outside;
OWN void my_leaver(int x)
{
    if (x)
        longjmp(outside, x);
}

OWN int my_second(int x)
{
    asm volatile("");
    return x * 3 + 7;
}
OWN int my_first(int x) /* its last act is to jump to the second */
{
    asm volatile("");
    return my_second(x + 1000);
}

OWN int my_recursion(int n)
{
    if (n < 2)
        return n;
    int one = my_recursion(n - 1), other = my_recursion(n - 2);
    asm volatile("" : "+r"(one), "+r"(other));
    return one - other;
}

OWN int my_choice(int x, int y)
{
    char text[40];
    snprintf(text, sizeof text, "%d", y);
    switch (x) {
    case 0: return y + atoi(text);
    case 1: return y * 3;
    case 2: return y - 7;
    case 3: return y * y;
    case 4: return -y;
    case 5: return y ^ 0x55;
    default: return 0;
    }
}

struct shape {
    virtual int area(int) const = 0;
    virtual ~shape() {}
};
struct square : shape {
    int side = 3;
    __attribute__((noinline)) int area(int times) const override { return side * side * times; }
};

OWN long double my_many(double a, long double b, int c, float d, long e, int f, int g, int h, struct large i)
{
    return a + b + c + d + e + f + g + h + i.words[7];
}

static volatile sig_atomic_t handled;
OWN void my_handler(int signal) { handled = handled + signal; }

OWN void *my_thread(void *argument)
{
    long sum = 0;
    for (long k = 0; k < 1000; k++)
        sum += my_choice(k % 6, 1) != 12345;
    return (void *)(sum + (long)argument);
}

/* longer than a region's name */
#define TEN(x) x x x x x x x x x x
#define LONG "my_long_" TEN(TEN("longer"))
extern "C" __attribute__((noinline, noclone)) int my_long(int x) asm(LONG);
int my_long(int x)
{
    asm volatile("" : "+r"(x));
    return x * 5 + 1000;
}

/* shorter than a jump, and followed by another */
extern "C" __attribute__((noinline, noclone)) int my_short(int x) { return x; }

static void work()
{
    registers();
    for (int k = 0; k < 10; k++)
        CHECK_EQ(my_catcher(k), 1);
    for (volatile int k = 0; k < 4; k = k + 1)
        if (setjmp(outside) == 0)
            my_leaver(k % 2);
    for (int k = 0; k < 20; k++)
        CHECK_EQ(my_first(k), k * 3 + 3007);
    CHECK_EQ(my_recursion(7), 1);
    const int results[] = {10, 15, -2, 25, -5, 5 ^ 0x55, 0};
    for (int k = 0; k < 7; k++)
        CHECK_EQ(my_choice(k, 5), results[k]);
    square one;
    shape *volatile some = &one;
    CHECK_EQ(some->area(2), 18);
    struct large large = {};
    large.words[7] = 8;
    CHECK(my_many(1, 2, 3, 4, 5, 6, 7, 8, large) == 44);
    signal(SIGUSR1, my_handler);
    for (int k = 0; k < 3; k++)
        raise(SIGUSR1);
    CHECK_EQ(handled, 3 * SIGUSR1);
    pthread_t threads[4];
    for (long k = 0; k < 4; k++)
        CHECK_EQ(pthread_create(&threads[k], NULL, my_thread, (void *)k), 0);
    for (long k = 0; k < 4; k++) {
        void *result;
        CHECK_EQ(pthread_join(threads[k], &result), 0);
        CHECK_EQ((long)result, 1000 + k);
    }
    CHECK_EQ(my_short(3), 3);
    for (int k = 0; k < 6; k++)
        CHECK_EQ(my_long(k), k * 5 + 1000);
    for (int k = 0; k < 5; k++)
        CHECK_EQ(by_pointer(k).words[3], k + 3);
}

int main()
{
#ifndef __x86_64__
    SKIP("functions are patched on x86-64");
#endif
    if (measured("TOPDOWN_FUNCTIONS", "*my_*,*square*area*,libhooked.so:by_pointer,nobody_*,my_nothing*")) {
        work();
        return 0;
    }
    const struct {
        const char *name;
        long ended, unended;
    } expected[] = {
        {"my_leaf(long)", 1, 0},
        {"my_deep(int)", 55, 0},
        {"my_catcher(int)", 10, 0},
        {"my_leaver(int)", 2, 2},
        {"my_first(int)", 20, 0},
        {"my_second(int)", 20, 0},
        {"my_recursion(int)", 41, 0},
        {"my_choice(int, int)", 4007, 0},
        {"square::area(int) const", 1, 0},
        {"my_handler(int)", 3, 0},
        {"my_thread(void*)", 4, 0},
        {"by_pointer", 5, 0},
        {"main", 0, 0},
    };
    for (const auto &one : expected)
        REGION(one.name, one.ended, one.unended);
    char name[600], address[30];
    Dl_info here;
    CHECK(dladdr((void *)my_long, &here));
    snprintf(address, sizeof address, "...@%#lx", (unsigned long)((char *)my_long - (char *)here.dli_fbase));
    snprintf(name, sizeof name, "%.*s%s", (int)(511 - strlen(address)), LONG, address);
    REGION(name, 6, 0);
    CHECK(said("'nobody_*' names no function of hooks_patched"));
    CHECK(said("not measured in hooks_patched: functions shorter than a jump: my_short"));
    return 0;
}
