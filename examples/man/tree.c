/* All nodes that are measured of this loop, with their bounds. */
#include <stdio.h>
#include <topdown.h>

enum { ROOM = 256 };

int main(void)
{
    td_t *td;
    struct td_sample before, after;
    struct td_node nodes[ROOM];
    uint32_t count;

    if (td_open(&td, NULL)) {
        puts("SIMULATED: there are no counters here");
        if (td_simulate(&td, NULL, "Redwood Cove"))
            return 1;
    }
    td_read(td, &before);
    for (volatile int i = 0; i < 1000000; i++) {} /* the region */
    td_read(td, &after);
    if (td_decode_tree(&before, &after, nodes, ROOM, &count))
        return 1;
    for (uint32_t i = 0; i < count && i < ROOM; i++)
        if (nodes[i].measured)
            printf("%*s%s %.1f %%, from %.1f to %.1f\n",
                   2 * (int)nodes[i].level, "",
                   td_node_name(nodes[i].id), 100 * nodes[i].value,
                   100 * nodes[i].low, 100 * nodes[i].high);
    td_close(td);
    return 0;
}
