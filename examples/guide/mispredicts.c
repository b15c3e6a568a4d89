// Counts large values of an array in random order: a branch that nobody can predict. -DFIXED: the comparison is added, without a branch.
#include <stdint.h>
#include <stdio.h>

enum { VALUES = 1 << 16, ROUNDS = 6000 };
static uint8_t values[VALUES];

__attribute__((noinline)) static uint64_t count_large(void) {
  uint64_t count = 0;
  for (int k = 0; k < VALUES; k++) {
#ifdef FIXED
    count += values[k] >= 128;
#else
    if (values[k] >= 128) {
      count++;
      __asm__ volatile("" : "+r"(count)); // (a branch stays a branch)
    }
#endif
  }
  return count;
}

int main(void) {
  uint64_t seed = 1, count = 0;
  for (int k = 0; k < VALUES; k++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    values[k] = (uint8_t)(seed >> 56);
  }
  for (int round = 0; round < ROUNDS; round++) {
    count += count_large();
    __asm__ volatile("" ::: "memory"); // (each round reads the values again)
  }
  printf("%llu\n", (unsigned long long)count);
  return 0;
}
