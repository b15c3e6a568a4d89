/* expect.h: how test programs say what they find. Each exits 0 (right), 1 (wrong, and says where) or 77 (this machine lacks
 * what it takes, and says what). */
#ifndef EXPECT_H
#define EXPECT_H
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* For each page of its own that a program touches there are at most so many of a sanitizer's. */
#if defined __SANITIZE_THREAD__
#define SHADOW_PAGES 4
#elif defined __SANITIZE_ADDRESS__
#define SHADOW_PAGES 1
#else
#define SHADOW_PAGES 0
#endif

#define FAIL(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
#define SKIP(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(77))

#define CHECK(condition) ((condition) ? (void)0 : FAIL("%s does not hold", #condition))

#define CHECK_EQ(a, b) check_eq(__FILE__, __LINE__, #a, #b, (long long)(a), (long long)(b))
static inline void check_eq(const char *file, int line, const char *a, const char *b, long long x, long long y)
{
    if (x != y) {
        fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", file, line, a, x, b, y);
        exit(1);
    }
}

/* Path of this program. Execute this, not /proc/self/exe: under Valgrind 3.24 that is Valgrind. There the buffer also
 * holds Valgrind's path, beyond the length that readlink returns. */
static inline const char *own_path(void)
{
    static char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(length > 0);
    path[length] = 0;
    return path;
}
#endif
