/* levels.h: which levels were counted all the time between two samples. */
#ifndef LEVELS_H
#define LEVELS_H
#include "internals.h"
#include <topdown.h>

/* All levels of the handle were counted all the time between them. (General counters, of which no sample has registers, may go over to
 * level 1; each such stretch has a number.) */
static inline int has_all_levels(const struct td_sample *from, const struct td_sample *to)
{
    const int registers = own(from)->raw_metrics != 0 || own(to)->raw_metrics != 0;
    const struct td_own_base *a = &own(from)->base, *b = &own(to)->base;
    return a->level == b->level && (registers || a->level == 1 || a->switches == b->switches);
}

static inline int has_level_2(const struct td_sample *from, const struct td_sample *to)
{
    return own(to)->base.level == 2 && has_all_levels(from, to);
}

#endif
