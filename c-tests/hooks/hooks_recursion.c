/* Recursion, tail calls, callbacks, and a function that the measuring itself may use. */
#include "hooks.h"
#include "lib/hooked.h"

#define DEEP 5000

static __attribute__((noinline)) long by_count(long n) { return n < 2 ? 1 : factorial(n); }

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "factorial,tail_*,compare,call_back,libc.so.6:malloc,qsort")) {
        int numbers[] = { 3, 1, 2 };
        void *volatile memory;
        CHECK_EQ(by_count(5), 120);
        factorial(DEEP); /* more than one piece of memory holds */
        CHECK_EQ(tail_first(1), 6);
        CHECK_EQ(call_back(tail_first, 2), 10);
        qsort(numbers, 3, sizeof *numbers, compare);
        CHECK(numbers[0] == 1 && numbers[2] == 3);
        for (int i = 0; i < 10; i++) {
            memory = malloc(100);
            CHECK(memory != NULL);
            free(memory);
        }
        _exit(0); /* what is done at the end calls it, too */
    }
    REGION("factorial", 5 + DEEP, 0);
    REGION("tail_first", 2, 0);
    REGION("tail_second", 2, 0);
    REGION("compare", 3, 0);
    REGION("call_back", 1, 0);
    REGION("qsort", 1, 0);
    REGION("malloc", 10, 0);
    return 0;
}
