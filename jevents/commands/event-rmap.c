/* event-rmap CODE... : the names of raw events (bits 0 to 7 are the event, 8 to 15 its umask), by the event list. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "jevents.h"

int main(int argc, char **argv)
{
    int status = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: event-rmap CODE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        char *end, *name, *desc = NULL;
        const char *digits = argv[i] + (argv[i][0] == 'r'); /* as perf writes raw events */
        errno = 0;
        const unsigned long code = strtoul(digits, &end, digits == argv[i] ? 0 : 16);
        if (end == digits || *end || errno || code > 0xffffffff) {
            fprintf(stderr, "event-rmap: %s is no code of an event\n", argv[i]);
            status = 1;
        } else if (rmap_event((unsigned)code, &name, &desc) == 0) {
            printf("%lx: %s : %s\n", code, name, desc ? desc : "");
        } else {
            printf("%lx not found\n", code);
            status = 1;
        }
    }
    return status;
}
