/* Thousands of threads, four at a time: what the library had for one serves the next. */
#include "hooks.h"
#include "lib/hooked.h"

#define ROUNDS 800

static void *thread(void *argument)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(factorial(4), 24);
    return argument;
}

static void rounds(int count)
{
    pthread_t threads[4];
    for (int round = 0; round < count; round++) {
        for (int i = 0; i < 4; i++)
            threads[i] = start_thread(thread, NULL);
        for (int i = 0; i < 4; i++)
            join_thread(threads[i]);
    }
}

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "factorial")) {
        rounds(20); /* 80 threads: from then on they have the library's memory of those before */
        long before = address_space();
        rounds(ROUNDS - 20);
        CHECK(address_space() - before < 1000); /* 64 for each thread are 200,000 */
        return 0;
    }
    REGION("factorial", 4L * ROUNDS * 3 * 4, 0);
    return 0;
}
