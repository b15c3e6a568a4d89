/* Which function of this program wastes slots? It records itself. */
#include <stdio.h>
#include <stdlib.h>
#include <topdown_record.h>

enum { WORDS = 1 << 20 };
static unsigned next[WORDS];

/* Waits for memory. */
static __attribute__((noinline)) unsigned chase(unsigned from)
{
    for (int i = 0; i < 20000; i++)
        from = next[from];
    return from;
}

/* Adds up numbers at hand. */
static __attribute__((noinline)) unsigned add(unsigned from)
{
    for (unsigned i = 0; i < 1000000; i++)
        from += i ^ from << 3;
    return from;
}

int main(int argc, char **argv)
{
    const char *const file = argc > 1 ? argv[1] : "-";
    char why[1000];
    unsigned at = 0;

    for (unsigned i = 0; i < WORDS; i++)
        next[i] = (i * 1103515245u + 12345u) % WORDS;
    if (td_record_start(NULL)) {
        td_record_last_error(why, sizeof why);
        printf("not recorded: %s\n", why);
    }
    for (int i = 0; i < 300; i++)
        at = add(chase(at % WORDS));
    if (td_record_stop(file)) { /* "-", or a file: the ending chooses the format */
        td_record_last_error(why, sizeof why);
        printf("no profile: %s\n", why);
    }
    return at == 1;
}
