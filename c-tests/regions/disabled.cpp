// The rest of guard.cpp's program does without regions: neither of them disturbs the other.
#define TOPDOWN_DISABLE
#include "topdown_region.h"

static int evaluated;

int without_regions()
{
    topdown::region guard("of no account");
    TD_REGION_SCOPE((evaluated++, "scope"));
    TD_REGION_BEGIN((evaluated++, "begin"));
    TD_REGION_END((evaluated++, "end"));
    return evaluated + td_region_begin("begin") + td_region_end("end");
}
