/* What decodes samples and sums allocates nothing, on any core and whatever passed uncounted: a signal handler that interrupted malloc may call
 * it. */
#include "check.h"

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static volatile int forbidden, allocated;

static void allocates(void)
{
    allocated += forbidden;
}
void *malloc(size_t size) { allocates(); return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { allocates(); return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { allocates(); return __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) { allocates(); return __libc_memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size)
{
    allocates();
    *out = __libc_memalign(alignment, size);
    return *out == NULL ? ENOMEM : 0;
}
void free(void *old) { __libc_free(old); }

enum { MOST = 64 };
static struct td_node nodes[MOST];
static uint32_t count;
static int measured, wide;

/* All that decodes; how wide the widest node's interval is goes into `wide`. */
static void decoded(const struct td_sample *from, const struct td_sample *to)
{
    struct td_l1 l1;
    struct td_l2 l2;
    forbidden = 1;
    td_decode_l1(from, to, &l1);
    td_decode_l2(from, to, &l2);
    const int as_bare = td_decode_tree_as(from, to, TD_AS_BARE, nodes, MOST, &count);
    const int code = td_decode_tree(from, to, nodes, MOST, &count);
    forbidden = 0;
    CHECK_EQ(allocated, 0);
    CHECK(code == 0 && as_bare == 0 && count > 0);
    for (uint32_t k = 0; k < count; k++) {
        measured += (int)nodes[k].measured;
        wide += nodes[k].measured && nodes[k].high - nodes[k].low > 0.3;
    }
}

static void of_core(const char *core, uint32_t subtree)
{
    struct td_options options = {.size = sizeof options, .subtree = subtree};
    struct td_sample from, to;
    td_t *td;
    td_must(td_simulate(&td, &options, core));
    td_must(td_read(td, &from));
    do
        td_must(td_read(td, &to));
    while (to.slots - from.slots < 10000000);
    decoded(&from, &to);
    decoded(NULL, &to);
    /* the last tenth, and then nearly all, was not counted */
    const uint64_t ns = to.time_running_ns - from.time_running_ns;
    to.time_running_ns = from.time_running_ns + ns - ns / 10;
    decoded(&from, &to);
    to.time_running_ns = from.time_running_ns + ns / 100;
    const int before = wide;
    decoded(&from, &to);
    CHECK(wide > before);
    td_close(td);
}

int main(void)
{
    static const char *const CORES[] = {"Zen 4", "hip08", "AmpereOne", "Neoverse N2", "Neoverse V3", "Gracemont", "Skylake or Cascade Lake",
                                        "Golden or Raptor Cove, by counters", "Golden or Raptor Cove", "made-up core"};
    for (size_t k = 0; k < sizeof CORES / sizeof *CORES; k++)
        of_core(CORES[k], TD_NODE_NONE);
    static const uint32_t BELOW[] = {TD_NODE_RETIRING, TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_BACKEND_BOUND};
    for (size_t k = 0; k < sizeof BELOW / sizeof *BELOW; k++)
        of_core("Zen 4", BELOW[k]);
    of_core("hip08", TD_NODE_BAD_SPECULATION);
    of_core("AmpereOne", TD_NODE_BACKEND_BOUND);
    CHECK(measured > 300);
    forbidden = 1;
    void *volatile seen = malloc(1);
    forbidden = 0;
    free(seen);
    CHECK_EQ(allocated, 1);
    return 0;
}
