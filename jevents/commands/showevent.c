/* showevent [--test] EVENT... : what each event is for perf and the kernel, as PMU/config=.../; with --test, whether the
 * kernel opens it. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "jevents.h"

static int show(char *name, int test)
{
    struct perf_event_attr attr;
    if (resolve_event(name, &attr) < 0) {
        fprintf(stderr, "Cannot resolve %s\n", name);
        return 1;
    }
    char *event = format_raw_event(&attr, name);
    if (!event) {
        fprintf(stderr, "%s: no PMU has type %u\n", name, attr.type);
        return 1;
    }
    printf("%s\n", event);
    free(event);
    if (!test)
        return 0;
    attr.disabled = 1;
    int fd = perf_event_open(&attr, 0, -1, -1, 0);
    if (fd < 0 && errno == EACCES) { /* then perhaps in user mode alone */
        attr.exclude_kernel = 1;
        fd = perf_event_open(&attr, 0, -1, -1, 0);
    }
    if (fd < 0) {
        fprintf(stderr, "Cannot open %s: %s\n", name, strerror(errno));
        return 1;
    }
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    int test = 0, status = 0, shown = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--test") == 0) {
            test = 1;
        } else {
            status |= show(argv[i], test);
            shown = 1;
        }
    }
    if (!shown) {
        fprintf(stderr, "usage: showevent [--test] EVENT...\n");
        return 2;
    }
    return status;
}
