/* Where td_read_mark, which is compiled into programs, finds what it needs of a handle: programs of version 0.2.0 on find it there for as long as
 * the soname is libtopdown.so.0. */
#include "check.h"
#include <topdown_inline.h>

int main(void)
{
    CHECK_EQ(TD_INLINE_READER, 8);
    CHECK_EQ(TD_INLINE_RSEQ, 16);
    CHECK_EQ(TD_INLINE_LIMIT, 24);
    CHECK_EQ(TD_INLINE_COUNTERS, 48);
    CHECK_EQ(TD_INLINE_STAMP, 104);
    CHECK_EQ(TD_INLINE_NUMBERS, 320);
    CHECK_EQ(TD_INLINE_LEADER_LIMIT, 472);
    CHECK_EQ(TD_CONTROL_PAGE, 4096);
    return 0;
}
