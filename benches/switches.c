/* Two threads of control that wake each other by pipes, each in a cgroup of its own: `switches GROUP GROUP ROUNDS` prints the seconds that it took.
 * On the emulated machine docs/containers.md has what it shows. */
#include "check.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void join(const char *group)
{
    char path[256];
    snprintf(path, sizeof path, "/sys/fs/cgroup/%s/cgroup.procs", group);
    const int fd = open(path, O_WRONLY);
    CHECK(fd >= 0 && write(fd, "0", 1) == 1);
    close(fd);
}

int main(int count, char **arguments)
{
    CHECK_EQ(count, 4);
    const long rounds = atol(arguments[3]);
    int there[2], back[2];
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    if (fork() == 0) {
        join(arguments[2]);
        close(there[1]);
        for (char byte; read(there[0], &byte, 1) == 1;)
            CHECK(write(back[1], &byte, 1) == 1);
        _exit(0);
    }
    join(arguments[1]);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long k = 0; k < rounds; k++) {
        char byte = 0;
        CHECK(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    close(there[1]);
    CHECK(wait(NULL) > 0);
    printf("%.3f\n", (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec));
    return 0;
}
