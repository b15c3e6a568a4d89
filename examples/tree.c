/* Where do the slots of this loop go, as deep as this CPU tells? Arguments: nodes of deeper levels (l1_bound dtlb_load ...). */
#include <stdio.h>
#include <topdown.h>

enum { ROOM = 256 };

int main(int argc, char **argv)
{
    td_t *td;
    struct td_sample before, after;
    struct td_node nodes[ROOM];
    uint32_t count;
    struct td_options options = { .size = sizeof options };
    struct td_options simulated = { .size = sizeof simulated, .flags = TD_FLAG_SIMULATE };

    for (int i = 1; i < argc && i <= 8; i++)
        options.nodes[options.node_count++] = td_node_id(argv[i]);
    if (td_open(&td, &options)) {
        char why[512];
        td_last_error(why, sizeof why);
        if (argc > 1) {
            puts(why);
            return 1;
        }
        puts("SIMULATED: there are no counters here");
        if (td_open(&td, &simulated))
            return 1;
    }
    td_read(td, &before);
    for (volatile int i = 0; i < 1000000; i++) {} /* the region */
    td_read(td, &after);
    if (td_decode_tree(&before, &after, nodes, ROOM, &count))
        return 1; /* td_last_error says why */
    for (uint32_t i = 0; i < count && i < ROOM; i++) {
        const struct td_node *node = &nodes[i];
        printf("%*s%s: ", 2 * (int)node->level, "", td_node_name(node->id));
        if (node->measured)
            printf("%.1f %%, between %.1f and %.1f\n", 100 * node->value, 100 * node->low, 100 * node->high);
        else
            puts("not measured");
    }
    td_close(td);
    return 0;
}
