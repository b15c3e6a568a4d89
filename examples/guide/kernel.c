// Writes a byte at a time, a system call for each: most of it is the kernel's. -DFIXED: into a buffer, which is written when it is full.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { BYTES = 10 * 1000 * 1000, BUFFER = 1 << 16 };

__attribute__((noinline)) static int write_all(int file) {
#ifdef FIXED
  static char buffer[BUFFER];
  size_t filled = 0;
  for (int k = 0; k < BYTES; k++) {
    buffer[filled++] = (char)k;
    if (filled == BUFFER || k + 1 == BYTES) {
      if (write(file, buffer, filled) != (ssize_t)filled) {
        return 1;
      }
      filled = 0;
    }
  }
#else
  for (int k = 0; k < BYTES; k++) {
    char byte = (char)k;
    if (write(file, &byte, 1) != 1) {
      return 1;
    }
  }
#endif
  return 0;
}

int main(void) {
  int file = open("/dev/null", O_WRONLY);
  if (file < 0 || write_all(file) != 0) {
    perror("/dev/null");
    return 1;
  }
  close(file);
  return 0;
}
