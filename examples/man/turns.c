/* All levels of a region's tree: groups of counters take turns. */
#include <stdio.h>
#include <topdown.h>

enum { ROOM = 256 };

int main(void)
{
    struct td_turns *turns;
    struct td_node nodes[ROOM];
    uint32_t count;
    char why[1000];

    if (td_turns_open(&turns, NULL, TD_TURNS_ALL)) {
        td_last_error(why, sizeof why);
        printf("no groups that take turns: %s\n", why);
        return 0;
    }
    for (int times = 0; times < 1000; times++) {
        td_turns_begin(turns);
        for (volatile int i = 0; i < 500000; i++) {} /* the region */
        td_turns_end(turns);
    }
    if (td_turns_decode_tree(turns, nodes, ROOM, &count))
        return 1;
    for (uint32_t i = 0; i < count && i < ROOM; i++)
        if (nodes[i].measured)
            printf("%s %.1f %%\n", td_node_name(nodes[i].id),
                   100 * nodes[i].value);
    td_turns_close(turns);
    return 0;
}
