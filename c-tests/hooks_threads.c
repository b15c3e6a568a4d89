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

static long maps(void)
{
    long lines = 0;
    char line[1000];
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        lines++;
    fclose(file);
    return lines;
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
        rounds(10);
        long before = maps();
        rounds(ROUNDS - 10);
        CHECK(maps() - before < 20);
        return 0;
    }
    REGION("factorial", 4L * ROUNDS * 3 * 4, 0);
    return 0;
}
