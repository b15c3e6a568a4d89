// The header is C++, too: a program includes it, opens, reads, decodes and closes.
#include "check.h"
#include <memory>
#include <topdown_inline.h>
#include <type_traits>

static_assert(std::is_trivially_copyable<td_sample>::value && std::is_standard_layout<td_sample>::value,
              "samples are plain data");

struct closer {
    void operator()(td_t *td) const { td_close(td); }
};

/* in a function that the linker may find twice */
template <typename T> T marked(td_t *td)
{
    T mark{};
    td_must(td_read_mark(td, &mark));
    return mark;
}

int main()
{
    std::unique_ptr<td_t, closer> td(simulated(2));
    td_sample before{}, after{};
    td_l1 l1{};
    td_l2 l2{};
    td_must(td_read(td.get(), &before));
    work(1000000);
    td_must(td_read(td.get(), &after));
    td_must(td_decode_l1(&before, &after, &l1));
    td_must(td_decode_l2(nullptr, &after, &l2));
    double level_1[4], level_2[8];
    l1_array(&l1, level_1);
    l2_array(&l2, level_2);
    CHECK_NEAR(level_1[0] + level_1[1] + level_1[2] + level_1[3], 1, 1e-9);
    CHECK_NEAR(level_1[0], 0.4, l1.error);
    const td_mark mark = marked<td_mark>(td.get());
    td_must(td_mark_sample(td.get(), &mark, &before));
    CHECK(before.slots >= after.slots);
    CHECK_EQ(td_reset(nullptr), -EINVAL);
    return 0;
}
