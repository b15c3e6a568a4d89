/* Regions that do not nest, and some whose ends are missing. */
#include <stdio.h>
#include <topdown_region.h>

static int wrong;

#define BEGIN(name) (wrong |= td_region_begin(name))
#define END(name) (wrong |= td_region_end(name))

int main(void)
{
    char name[16];

    BEGIN("A");
    BEGIN("B");
    END("A");
    END("B");

    BEGIN("C"); /* the third is split twice */
    BEGIN("D");
    BEGIN("E");
    END("C");
    END("D");
    END("E");

    BEGIN("most"); /* so is one that outlives two around it */
    BEGIN("middle");
    BEGIN("within");
    END("middle");
    END("most");
    END("within");

    BEGIN("itself"); /* the inner one ends, and what is in it is still in the outer one */
    BEGIN("itself");
    BEGIN("in itself");
    END("itself");
    END("in itself");
    END("itself");

    for (int i = 0; i < 20; i++) {
        BEGIN("loop");
        BEGIN("forgets");
        END("loop");
    }
    for (int i = 0; i < 40; i++) { /* more than can be open: those that are do not count */
        snprintf(name, sizeof name, "name %d", i);
        BEGIN("around");
        BEGIN(name);
        END("around");
    }
    BEGIN("fresh");
    END("fresh");
    if (!wrong)
        puts("done");
    return wrong;
}
