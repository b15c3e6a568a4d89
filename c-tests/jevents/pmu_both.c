/* Both libraries in one program, whichever came first: somebody writes 0 to the PMU's `rdpmc` file, and each survives its own
 * RDPMC that faults. td_read says TD_ENORDPMC, rdpmc_read goes on by read(2). */
#include "pmu.h"
#include <rdpmc.h>

static void grant_again(void) { rdpmc_is(1); }

static void counter_opens(struct rdpmc_ctx *ctx)
{
    CHECK_EQ(rdpmc_open(PERF_COUNT_HW_INSTRUCTIONS, ctx), 0);
    CHECK(ctx->buf->index != 0);
}

static void both(int counter_first)
{
    struct td_sample sample;
    struct rdpmc_ctx ctx;
    if (counter_first)
        counter_opens(&ctx);
    td_t *td = measured(NULL);
    if (!counter_first)
        counter_opens(&ctx);
    td_must(td_read(td, &sample));
    const unsigned long long before = rdpmc_read(&ctx);
    rdpmc_is(0);
    for (int i = 0; i < 2; i++) {
        work(100000);
        CHECK_EQ(td_read(td, &sample), TD_ENORDPMC);
        const unsigned long long passed = rdpmc_read(&ctx) - before;
        CHECK(passed > 100000ull * (i + 1));
        CHECK(passed < 100000ull * (i + 1) + 50000);
    }
    rdpmc_is(1);
    rdpmc_close(&ctx);
    td_close(td);
}

int main(int argc, char **argv)
{
    atexit(grant_again);
    in_both_orders(argc, argv, both);
    return 0;
}
