// Two threads count, each for itself, in counters on one cache line, which goes to and fro between their cores. -DFIXED: a line for each.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { THREADS = 2, STEPS = 1000 * 1000 * 1000, LINE = 64 };

#ifdef FIXED
struct counter {
  _Alignas(LINE) volatile uint64_t count;
};
#else
struct counter {
  volatile uint64_t count;
};
#endif

static struct counter counters[THREADS];

__attribute__((noinline)) static void *count_alone(void *own) {
  struct counter *counter = own;
  for (int step = 0; step < STEPS; step++) {
    counter->count++;
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  uint64_t sum = 0;
  for (int k = 0; k < THREADS; k++) {
    if (pthread_create(&threads[k], NULL, count_alone, &counters[k]) != 0) {
      return 1;
    }
  }
  for (int k = 0; k < THREADS; k++) {
    pthread_join(threads[k], NULL);
    sum += counters[k].count;
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
