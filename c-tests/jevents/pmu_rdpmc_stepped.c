/* A debugger steps through rdpmc_read, an instruction at a time: it ends, and says what the kernel says. */
#include <rdpmc.h>

#include "counters.h"
#include "stepped.h"

enum { LIMIT = 5000, LOOP = 1000000, SLACK = 20000 };

static void reads(void)
{
    struct rdpmc_ctx ctx;
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, INSTRUCTIONS);
    uint64_t total;
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, NULL), 0);
    CHECK(ctx.buf->index != 0 && ctx.buf->cap_user_rdpmc);
    for (int i = 0; i < 3; i++) {
        step_from_here();
        const uint64_t before = rdpmc_read(&ctx);
        step_to_here();
        work(LOOP);
        step_from_here();
        const uint64_t after = rdpmc_read(&ctx);
        step_to_here();
        CHECK_EQ(read(ctx.fd, &total, sizeof total), sizeof total);
        CHECK(after - before >= LOOP && after - before < LOOP + SLACK);
        CHECK(total >= after && total < after + SLACK);
    }
    rdpmc_close(&ctx);
}

int main(void)
{
    needs_known_counts();
    printf("%ld steps\n", stepped(reads, LIMIT));
    return 0;
}
