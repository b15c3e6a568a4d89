/* A library whose functions are hooked. */
#include "hooked.h"
#include <stdarg.h>

int plain(int x) { return x + 1; }

struct two in_registers(double real, long whole) { return (struct two){ real * 2, whole * 2 }; }

struct pair pair(long first) { return (struct pair){ first, first + 1 }; }

struct large by_pointer(long first)
{
    struct large result;
    for (int i = 0; i < 9; i++)
        result.words[i] = first + i;
    return result;
}

double many(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j, long k, long l,
            long m, long n, long o, long p, long q, long r, long double s, struct large t)
{
    double sum = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
    sum += (double)(11 * k + 12 * l + 13 * m + 14 * n + 15 * o + 16 * p + 17 * q + 18 * r) + (double)s * 19;
    for (int word = 0; word < 9; word++)
        sum += (double)t.words[word] * (20 + word);
    return sum;
}

double variable(int count, ...)
{
    va_list list;
    double sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        sum = sum * 10 + va_arg(list, double) + va_arg(list, int);
    va_end(list);
    return sum;
}

long double x87(long double x) { return x * x; }

_Complex long double two_x87(long double x)
{
    _Complex long double result;
    __real__ result = x + 1;
    __imag__ result = x - 1;
    return result;
}

WITH_AVX four vectors(four a, four b) { return a * b + a; }

/* (gcc has a function call itself directly, and makes loops of calls if it can) */
long factorial(long n) { return n < 2 ? 1 : n * factorial_below(n); }

long factorial_below(long n) { return factorial(n - 1) + 0 * n; }

int tail_second(int x) { return x * 3; }

int tail_first(int x) { return tail_second(x + 1); }

int call_back(int (*function)(int), int x) { return function(x) + 1; }

int tail_back(int (*function)(int), int x) { return call_back(function, x); }

static void (*volatile away)(jmp_buf where, int value) = longjmp; /* the compiler is not to know that it is the end */

void jump(jmp_buf where, int deep)
{
    if (deep == 0)
        away(where, 1);
    else
        jump_deeper(where, deep);
    __asm__ volatile("");
}

void jump_deeper(jmp_buf where, int deep)
{
    jump(where, deep - 1);
    __asm__ volatile("");
}

int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}
