/* told_nodes.h: nodes that were decoded, each compared with its formula of the rates that the program has. */
#ifndef TOLD_NODES_H
#define TOLD_NODES_H
#include "formulas.h"

enum { MOST_NODES = 128 };
static struct td_node nodes[MOST_NODES];
static uint32_t count;

/* The node, if it was decoded. */
static const struct td_node *node_of(uint32_t id)
{
    for (uint32_t k = 0; k < count; k++)
        if (nodes[k].id == id)
            return &nodes[k];
    return NULL;
}

/* Puts down what was decoded as formulas.h reads it. */
static void nodes_are_told(void)
{
    size_t size = 0;
    CHECK(count <= MOST_NODES);
    report[0] = 0;
    for (uint32_t k = 0; k < count; k++)
        if (nodes[k].measured)
            size += (size_t)snprintf(report + size, sizeof report - size, "\"%s\": { \"value\": %.9f, \"low\": %.9f, \"high\": %.9f }\n",
                                     td_node_name(nodes[k].id), nodes[k].value, nodes[k].low, nodes[k].high);
}

/* Compares all nodes that the core's own levels do not have; how many. Of `slots` some were not the work of so many instructions. */
static int nodes_are_true(const char *where, uint64_t slots, uint64_t instructions)
{
    const double slack = (double)slots / ((double)instructions * width) - 1;
    int compared = 0;
    CHECK(slack > -0.001 && slack < 0.02);
    nodes_are_told();
    for (uint32_t k = 0; k < count; k++) {
        const struct text_line *line = line_of(td_node_name(nodes[k].id) + strlen("tma_"));
        if (!nodes[k].measured || line == NULL || line->formula == NULL)
            continue;
        double truth = formula(line->formula);
        if (!isfinite(truth))
            continue; /* (what the rates do not tell) */
        truth = truth < 0 ? 0 : truth > 1 ? 1 : truth;
        compared++;
        fprintf(stderr, "%s %s: %f, %f to %f, truth %f\n", where, line->name, nodes[k].value, nodes[k].low, nodes[k].high, truth);
        CHECK(nodes[k].low <= truth * (1 + slack) + slack && nodes[k].high >= truth * (1 - slack) - slack);
    }
    return compared;
}
#endif
