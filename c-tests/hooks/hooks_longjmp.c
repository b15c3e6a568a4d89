/* A longjmp leaves hooked functions: they count as unended, those outside and after them as they are, and the memory that
 * the library had for them is used again. */
#include "hooks.h"
#include "lib/hooked.h"

#define TIMES 3000
#define DEEP 3

static volatile int landed;

static __attribute__((noinline)) int catch_it(int deep)
{
    jmp_buf here;
    if (setjmp(here) == 0)
        jump(here, deep);
    landed++;
    return plain(deep);
}

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "jump,plain,call_back,compare")) {
        CHECK_EQ(call_back(catch_it, DEEP), DEEP + 2);
        CHECK_EQ(catch_it(0), 1);
        long before = address_space();
        for (int i = 0; i < TIMES; i++)
            CHECK_EQ(catch_it(DEEP), DEEP + 1);
        CHECK_EQ(landed, TIMES + 2);
        CHECK(address_space() - before < 200); /* entries for all of them are 700 */
        return 0;
    }
    REGION("call_back", 1, 0);
    REGION("jump", 0, (DEEP + 1) * (TIMES + 1) + 1);
    REGION("plain", TIMES + 2, 0);
    return 0;
}
