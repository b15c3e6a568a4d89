/* TD_FLAG_KERNEL counts the kernel's slots, too, and is read by read(2), whatever RDPMC is granted; without it a system call
 * costs its few instructions in user mode. */
#include "pmu.h"

static uint64_t slots_of_calls(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    struct td_sample before, after;
    struct td_l1 l1;
    td_t *td = measured(&options);
    const struct td_info info = info_of(td);
    if (flags & TD_FLAG_KERNEL) {
        CHECK_EQ(info.path, TD_PATH_READ);
        CHECK(strstr(info.note, "TD_FLAG_KERNEL") != NULL);
    } else {
        CHECK_EQ(info.path, TD_PATH_RDPMC);
        CHECK_EQ(info.note[0], 0);
    }
    td_must(td_read(td, &before));
    for (int i = 0; i < 1000; i++)
        syscall(SYS_getppid);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    td_close(td);
    return l1.slots;
}

int main(void)
{
    const struct td_options options = options_of(TD_FLAG_KERNEL, 0);
    td_close(measured(&options));
    const uint64_t user = slots_of_calls(0), both = slots_of_calls(TD_FLAG_KERNEL);
    CHECK(user > 0);
    CHECK(both > 2 * user);
    return 0;
}
