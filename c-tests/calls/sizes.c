/* What the library writes has the size of the first version, for ever (what it reads may grow), and what a caller's memory held before does not matter: each output
 * ends at the end of a page, behind which there is none. */
#include "calls.h"
#include <sys/mman.h>

/* Programs are built with these. */
_Static_assert(sizeof(struct td_options) == 96 && offsetof(struct td_options, subtree) == 28, "td_options");
_Static_assert(offsetof(struct td_options, source) == 32 && offsetof(struct td_options, core_type) == 36, "td_options");
_Static_assert(offsetof(struct td_options, node_count) == 40 && offsetof(struct td_options, nodes) == 44, "td_options");
_Static_assert(sizeof(struct td_sample) == 256 && offsetof(struct td_sample, opaque) == 32, "td_sample");
_Static_assert(sizeof(struct td_l1) == 80 && offsetof(struct td_l1, smt_contention) == 64, "td_l1");
_Static_assert(sizeof(struct td_l2) == 112 && offsetof(struct td_l2, running) == 88, "td_l2");
_Static_assert(sizeof(struct td_info) == 384 && offsetof(struct td_info, counters) == 376, "td_info");
_Static_assert(sizeof(struct td_node) == 96 && offsetof(struct td_node, value) == 32, "td_node");
_Static_assert(sizeof(struct td_sum) == 1120 && offsetof(struct td_sum, opaque) == 72, "td_sum");
_Static_assert(sizeof(struct td_mix) == 72 && offsetof(struct td_mix, memory_bound) == 64, "td_mix");

static const struct {
    int pointer;
    uint32_t size;
} WRITTEN[] = {{SAMPLE, 256}, {L1, 80}, {L2, 112}, {INFO, 384}, {NODES, 96}};
enum { OUTPUTS = sizeof WRITTEN / sizeof WRITTEN[0] };

int main(void)
{
    static const uint32_t before[] = {0, 1, 8, 64, 4096, 0x55555555, UINT32_MAX};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *room = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(room != MAP_FAILED && mprotect(room + page, page, PROT_NONE) == 0);
    td_t *td = simulated(0);
    struct pointees to;
    const struct pointers good = good_pointers(td, &to);
    td_must(td_mark_read_slowly(td, &to.mark));
    td_must(td_sum_add(&to.sum, &to.earlier, &to.later));
    int written = 0;
    for (int i = 0; i < CALLS_IN_ALL * OUTPUTS; i++) {
        const struct call *call = &CALLS[i / OUTPUTS];
        const int pointer = WRITTEN[i % OUTPUTS].pointer;
        const size_t length = size_of_pointee(pointer);
        for (int k = 0; k < MOST_ARGUMENTS; k++) {
            if (call->argument[k].pointer != pointer || call->argument[k].role != OUT)
                continue;
            for (size_t size = 0; size < sizeof before / sizeof before[0]; size++) {
                struct pointers spoiled = good;
                spoiled.at[pointer] = room + page - length;
                memset(room, 0x55, page);
                memcpy(spoiled.at[pointer], &before[size], sizeof before[size]);
                td_must(call->call(&spoiled));
                CHECK_EQ(*(uint32_t *)spoiled.at[pointer], WRITTEN[i % OUTPUTS].size);
                for (const unsigned char *byte = room; byte < room + page - length; byte++)
                    CHECK_EQ(*byte, 0x55);
            }
            written++;
        }
    }
    CHECK_EQ(written, 13); /* samples 2, shares 3 and 3, nodes 4, and what a handle measures */

    /* a sum is cleared by the caller */
    struct td_sum *sum = (struct td_sum *)(room + page - sizeof *sum);
    memset(sum, 0, sizeof *sum);
    td_must(td_sum_add(sum, &to.earlier, &to.later));
    CHECK_EQ(sum->size, 1120);
    td_must(td_sum_begin(td, sum));
    td_must(td_sum_end(td, sum));
    td_close(td);
    return 0;
}
