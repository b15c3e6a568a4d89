// A chain of divisions, each of which waits for the one before. -DFIXED: the divisor stays the same, so that its reciprocal is multiplied,
// in four chains at once.
#include <stdio.h>

enum { STEPS = 200 * 1000 * 1000, CHAINS = 4 };

__attribute__((noinline)) static double divide_often(double divisor) {
#ifdef FIXED
  double chains[CHAINS] = {1e9, 2e9, 3e9, 4e9}, reciprocal = 1 / divisor;
  for (int step = 0; step < STEPS / CHAINS; step++) {
    for (int k = 0; k < CHAINS; k++) {
      chains[k] = chains[k] * reciprocal + 1;
    }
  }
  return chains[0] + chains[1] + chains[2] + chains[3];
#else
  double value = 1e9;
  for (int step = 0; step < STEPS; step++) {
    value = value / divisor + 1;
  }
  return value;
#endif
}

int main(void) {
  volatile double divisor = 1.0001;
  printf("%g\n", divide_often(divisor));
  return 0;
}
