/* Whatever a hooked function takes and returns arrives, in a program that is bound lazily. */
#include "hooks.h"
#include "lib/hooked.h"
#include <complex.h>
#include <stdarg.h>

static int (*volatile table[])(int) = { plain };
static volatile double one = 1;
static volatile long double long_one = 1;

/* A value in a register that calls preserve, and one in each that they do not: the compiler's own, around every call. */
static void results(void)
{
    char text[200];
    struct large large = by_pointer(100);
    struct two two = in_registers(1.5, 21);

    for (int i = 0; i < 3; i++)
        CHECK_NEAR(exp(one), 2.718281828459045, 1e-15);
    CHECK(expl(long_one) - 2.718281828459045235360287L < 1e-18L);
    CHECK(fabsl(-long_one / 3) == long_one / 3);
    CHECK(x87(long_one / 3) == long_one / 3 * (long_one / 3));
    CHECK(creall(two_x87(long_one)) == 2 && cimagl(two_x87(long_one)) == 0);
    CHECK_EQ(plain(41), 42);
    CHECK_EQ(table[0](1), 2);
    for (int i = 0; i < 9; i++)
        CHECK_EQ(large.words[i], 100 + i);
    CHECK(pair(7).first == 7 && pair(8).second == 9);
    CHECK(two.real == 3 && two.whole == 42);
    double sum = 0;
    for (int i = 1; i <= 10; i++)
        sum += i * (i + 0.5);
    for (int i = 11; i <= 18; i++)
        sum += (double)i * i;
    sum += 19 * 7.25;
    for (int i = 0; i < 9; i++)
        sum += (20 + i) * (100 + i);
    CHECK_NEAR(many(1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11, 12, 13, 14, 15, 16, 17, 18, 7.25L, large), sum, 0);
    CHECK_NEAR(variable(3, 1.0, 1, 2.0, 2, 3.0, 3), 246, 0);
    snprintf(text, sizeof text, "%d %.2f %s %Lg %c %g %g %g %g %g %g %g %g", 7, 2.5, "x", 1.5L, 'c', 1., 2., 3., 4., 5.,
             6., 7., 8.);
    CHECK_EQ(strcmp(text, "7 2.50 x 1.5 c 1 2 3 4 5 6 7 8"), 0);
}

WITH_AVX __attribute__((noinline)) static void avx(void)
{
    four a = { one, 2 * one, 3 * one, 4 * one }, b = { 5, 6, 7, 8 }, product = vectors(a, b);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(product[i], a[i] * b[i] + a[i], 0);
}

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "libm.so.6:exp,expl,fabsl,libhooked.so:*,libc*:snprintf")) {
        results();
        if (HAS_AVX)
            avx();
        errno = 1234; /* nor is this touched */
        plain(1);
        CHECK_EQ(errno, 1234);
        return 0;
    }
    REGION("exp", 3, 0);
    REGION("expl", 1, 0);
    REGION("x87", 1, 0);
    REGION("two_x87", 2, 0);
    REGION("plain", 3, 0);
    REGION("by_pointer", 1, 0);
    REGION("in_registers", 1, 0);
    REGION("pair", 2, 0);
    REGION("many", 1, 0);
    REGION("variable", 1, 0);
    REGION("snprintf", 1, 0);
    if (HAS_AVX)
        REGION("vectors", 1, 0);
    return 0;
}
