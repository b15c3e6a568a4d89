/* Opening, reading and closing a handle takes less than 64 KiB of stack, whatever core is measured or simulated: musl gives
 * a thread 128 KiB. */
#include "check.h"
#include <sys/mman.h>
#include <sys/uio.h>
#ifndef OPEN
#define OPEN() simulated(0) /* pmu_small_stack.c has another */
#define CORES {NULL, "made-up core"}
#endif

enum { STACK = 1 << 20, MOST = 64 << 10, PAINT = 0xa5 };

static void *uses(void *core)
{
    td_t *td;
    struct td_sample before, after;
    struct td_info info;
    struct td_l1 l1;
    if (core != NULL)
        td_must(td_simulate(&td, NULL, core));
    else
        td = OPEN();
    td_must(td_read(td, &before));
    work(1000);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    td_must(td_reset(td));
    td_must(td_get_info(td, &info));
    td_close(td);
    return NULL;
}

static size_t stack_of(void *(*start)(void *), const char *core)
{
    unsigned char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t untouched = 0;
    pthread_attr_t painted;
    pthread_t thread;
    CHECK(stack != MAP_FAILED);
    memset(stack, PAINT, STACK);
    CHECK_EQ(pthread_attr_init(&painted), 0);
    CHECK_EQ(pthread_attr_setstack(&painted, stack, STACK), 0);
    CHECK_EQ(pthread_create(&thread, &painted, start, (void *)core), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    /* (asked of the kernel: Valgrind takes what is below a stack's end for unreadable) */
    static unsigned char left[STACK];
    const struct iovec to = {left, STACK}, from = {stack, STACK};
    CHECK_EQ(process_vm_readv(getpid(), &to, 1, &from, 1, 0), STACK);
    while (untouched < STACK && left[untouched] == PAINT)
        untouched++;
    CHECK_EQ(munmap(stack, STACK), 0);
    return STACK - untouched;
}

static void *nothing(void *unused) { return unused; }

int main(void)
{
    const char *cores[] = CORES;
    const size_t bare = stack_of(nothing, NULL);
    for (size_t k = 0; k < sizeof cores / sizeof *cores; k++) {
        const size_t used = stack_of(uses, cores[k]) - bare;
        printf("%s: %zu bytes\n", cores[k] != NULL ? cores[k] : "what there is", used);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* whose frames are larger */
        CHECK(used <= MOST);
#endif
    }
    return 0;
}
