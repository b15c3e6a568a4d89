// topdown::region ends with its block, however that is left. In C++98 and later.
#include "topdown_region.h"

#include <stdio.h>

int without_regions();

static void thrower(int depth)
{
    topdown::region guard("thrower");
    if (depth == 0)
        throw 1;
    TD_REGION_SCOPE("deeper");
    thrower(depth - 1);
}

int main()
{
    int caught = 0;
    {
        topdown::region guard("block");
        TD_REGION_SCOPE("scope");
        TD_REGION_SCOPE("scope 2");
    }
    try {
        thrower(0);
    } catch (int) {
        caught++;
    }
    {
        topdown::region guard("after");
        try {
            thrower(1);
        } catch (int) {
            caught++;
        }
    }
    puts(caught == 2 && without_regions() == 0 ? "done" : "not caught");
    return 0;
}
