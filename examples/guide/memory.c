// Adds up a large matrix column by column: each load is of another cache line. -DFIXED: row by row, in the order in which it lies.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 4096, ROUNDS = 20 };

__attribute__((noinline)) static uint64_t sum_matrix(const uint32_t *matrix) {
  uint64_t sum = 0;
  for (int i = 0; i < SIDE; i++) {
#ifdef FIXED
    for (int k = 0; k < SIDE; k++) sum += matrix[i * SIDE + k];
#else
    for (int k = 0; k < SIDE; k++) sum += matrix[k * SIDE + i];
#endif
  }
  return sum;
}

int main(void) {
  uint32_t *matrix = malloc(sizeof *matrix * SIDE * SIDE);
  uint64_t sum = 0;
  if (matrix == NULL) {
    return 1;
  }
  for (size_t k = 0; k < (size_t)SIDE * SIDE; k++) {
    matrix[k] = (uint32_t)k;
  }
  for (int round = 0; round < ROUNDS; round++) {
    sum += sum_matrix(matrix);
  }
  printf("%llu\n", (unsigned long long)sum);
  free(matrix);
  return 0;
}
