/* A program that includes topdown_region.h and knows no library. */
#include "topdown_region.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int in_another_file(void);

/* functions like others */
static int (*volatile begin)(const char *) = td_region_begin;
static int (*volatile end)(const char *) = td_region_end;

static int early(int leave)
{
    TD_REGION_SCOPE("scope");
    if (leave)
        return 1;
    TD_REGION_SCOPE("later scope");
    return 0;
}

int main(int argc, char **argv)
{
    int loaded = argc > 1 && !strcmp(argv[1], "loaded"), sum;
    char name[8] = "twice", *too_long = malloc(600);

    if (!too_long)
        return 1;
    memset(too_long, 'x', 599);
    too_long[599] = 0;

    sum = td_region_begin("outer");
    sum += begin(name);
    sum += td_region_end("twice");
    sum += td_region_begin("twice");
    sum += end(name);
    sum += td_region_end("outer");
    sum += in_another_file();
    TD_REGION_BEGIN("macro");
    TD_REGION_END("macro");
    early(0);
    early(1);
    if (sum) {
        printf("codes add up to %d\n", sum);
        return 1;
    }
    if (td_region_begin(NULL) != (loaded ? -EINVAL : 0) || td_region_end(NULL) != (loaded ? -EINVAL : 0)) {
        puts("NULL is no name");
        return 1;
    }
    if (!loaded && (td_region_begin(too_long) || td_region_end(too_long) || td_region_end("never begun")))
        return 1;
    if (loaded && td_region_end("never begun") != -EINVAL) {
        puts("an end without a beginning");
        return 1;
    }
    if (loaded && (td_region_begin(too_long) != -ENAMETOOLONG || td_region_end(too_long) != -EINVAL)) {
        puts("a name of 599 bytes");
        return 1;
    }
    free(too_long);
    puts("done");
    return 0;
}
