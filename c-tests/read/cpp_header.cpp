/* topdown.hpp: shares are those that the C functions have, handles are closed once, and each failure is a code and an exception with the
 * whole story.
 * needs: nothing */
#include "check.h"
#include <topdown.hpp>
#include <type_traits>

static_assert(!std::is_copy_constructible_v<topdown::counter> && std::is_nothrow_move_constructible_v<topdown::counter>);
static_assert(!std::is_copy_constructible_v<topdown::region>);

static int descriptors()
{
    int count = 0;
    DIR *const all = opendir("/proc/self/fd");
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

static void spin()
{
    for (volatile int k = 0; k < 20000000; k++) {
    }
}

int main()
{
    topdown::options simulated;
    simulated.flags = TD_FLAG_SIMULATE;
    const int before_all = descriptors();
    {
        topdown::counter counter(simulated);
        CHECK(counter && counter.info().path == TD_PATH_SIMULATED);
        struct td_mix mix = {};
        mix.size = sizeof mix;
        mix.retiring = 0.5, mix.bad_speculation = 0.1, mix.frontend_bound = 0.1, mix.backend_bound = 0.3;
        CHECK_EQ(td_simulate_mix(counter.get(), &mix), 0);
        const td_sample from = counter.read();
        {
            topdown::region region("spin");
            spin();
        }
        const td_sample to = counter.read();
        const td_l1 shares = topdown::level1(from, to);
        CHECK_NEAR(shares.retiring, 0.5, shares.error);
        CHECK_NEAR(shares.backend_bound, 0.3, shares.error);
        struct td_l2 of_c;
        CHECK_EQ(td_decode_l2(&from, &to, &of_c), 0);
        CHECK(topdown::level2(from, to).memory_bound == of_c.memory_bound);
        std::error_code code;
        const auto nodes = topdown::tree(from, to, code);
        CHECK(!code && !nodes.empty() && nodes.size() == topdown::tree(from, to).size());

        /* moved, it is one handle */
        topdown::counter other(std::move(counter));
        CHECK(other && !counter);
        topdown::counter &same = other; /* (compilers warn of what is moved to itself by name) */
        other = std::move(same);
        CHECK(other.read(code).slots >= to.slots && !code);
        counter = std::move(other);
        counter.reset();
        counter.reset(code);
        CHECK(!code);

        /* the samples are of an earlier period: a code, and an exception */
        const td_sample later = counter.read();
        (void)topdown::level1(from, later, code);
        CHECK(code == std::error_code(TD_ESTALE, topdown::category()));
        bool is_thrown = false;
        try {
            (void)topdown::level1(from, later);
        } catch (const topdown::error &failure) {
            is_thrown = failure.code() == code && strstr(failure.what(), topdown::last_error().c_str()) == failure.what() && topdown::last_error().size() > 20;
        }
        CHECK(is_thrown);
    }
    CHECK_EQ(descriptors(), before_all);

    /* what cannot be opened is no counter; an errno compares with std::errc */
    topdown::options wrong;
    wrong.target = 77;
    std::error_code code;
    topdown::counter none = topdown::counter::open(wrong, code);
    CHECK(!none && code == std::errc::invalid_argument && code.category() == topdown::category() && !code.message().empty());
    bool is_thrown = false;
    try {
        topdown::counter thrown(wrong);
    } catch (const std::system_error &failure) {
        is_thrown = failure.code() == std::errc::invalid_argument;
    }
    CHECK(is_thrown);
    (void)none.read(code);
    CHECK(code == std::errc::invalid_argument);
    return 0;
}
