/* What lib/hooked.c has: functions to be hooked, each with arguments, results or an end of its own kind. */
#ifndef HOOKED_H
#define HOOKED_H
#include <setjmp.h>

/* Functions with vectors as long as registers may be, where there are such. */
#if defined(__x86_64__)
#define WITH_AVX __attribute__((target("avx")))
#define HAS_AVX __builtin_cpu_supports("avx")
#else
#define WITH_AVX
#define HAS_AVX 1
#endif
#ifdef __cplusplus
extern "C" {
#endif
struct two {
    double real;
    long whole;
};
struct pair {
    long first, second;
};
struct large {
    long words[9];
};
typedef double four __attribute__((vector_size(32)));

int plain(int x);
struct two in_registers(double real, long whole);
struct pair pair(long first);
struct large by_pointer(long first);
double many(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j, long k, long l,
            long m, long n, long o, long p, long q, long r, long double s, struct large t);
double variable(int count, ...);
long double x87(long double x);
_Complex long double two_x87(long double x);
four vectors(four a, four b);
long factorial(long n);               /* calls the next, and that this, as others do */
long factorial_below(long n);
int tail_first(int x);                /* its last act is to jump to tail_second */
int tail_second(int x);
int call_back(int (*function)(int), int x);
int tail_back(int (*function)(int), int x); /* its last act is to jump to call_back */
void jump(jmp_buf where, int deep);   /* so deep by way of the next, then longjmp */
void jump_deeper(jmp_buf where, int deep);
int compare(const void *a, const void *b);
#ifdef __cplusplus
}
#endif
#endif
