/* The floating-point environment of a program stays its own: no call leaves a flag, none traps where the program traps on every
 * exception, and what the program has for rounding changes no result. */
#include "check.h"
#include <fenv.h>
#include <topdown_inline.h>

enum { ROUNDS = 300, NODES = 64 };
static td_t *td;
static struct td_sample from, to;
static struct td_mark mark;
static struct td_sum sum, added;
static struct td_l1 l1;
static struct td_l2 l2;
static struct td_info info;
static struct td_node nodes[NODES];
static uint32_t count;

static int opening(void)
{
    td_close(td);
    td = simulated(0);
    work(20000);
    return td_read(td, &from);
}
static int reading(void) { return td_read(td, &to); }
static int marking(void) { return td_mark_read_slowly(td, &mark); }
static int of_mark(void) { return td_mark_sample(td, &mark, &to); }
static int of_l1(void) { return td_decode_l1(&from, &to, &l1); }
static int of_l1_from_start(void) { return td_decode_l1(NULL, &to, &l1); }
static int of_l2(void) { return td_decode_l2(&from, &to, &l2); }
static int of_tree(void) { return td_decode_tree(&from, &to, nodes, NODES, &count); }
static int raw(void) { return td_decode_raw_l1(0, 0, 1000003, 0x3333666633336666, &l1); }
static int adding(void) { return td_sum_add(&added, &from, &to); }
static int execution(void)
{
    const int code = td_sum_begin(td, &sum);
    work(3000);
    return code != 0 ? code : td_sum_end(td, &sum);
}
static int of_sum(void) { return td_sum_l1(&added, &l1); }
static int of_sum_2(void) { return td_sum_l2(&added, &l2); }
static int tree_of_sum(void) { return td_sum_decode_tree(&added, nodes, NODES, &count); }
static int asking(void) { return td_get_info(td, &info); }
static int resetting(void) { return td_reset(td); }

static const struct {
    const char *name;
    int (*call)(void);
} CALLS[] = {
    {"td_open, td_close", opening},      {"td_read", reading},
    {"td_mark_read_slowly", marking},    {"td_mark_sample", of_mark},
    {"td_decode_l1", of_l1},             {"td_decode_l1 from the start", of_l1_from_start},
    {"td_decode_l2", of_l2},             {"td_decode_tree", of_tree},
    {"td_decode_raw_l1", raw},           {"td_sum_add", adding},
    {"td_sum_begin, td_sum_end", execution}, {"td_sum_l1", of_sum},
    {"td_sum_l2", of_sum_2},             {"td_sum_decode_tree", tree_of_sum},
    {"td_get_info", asking},             {"td_reset", resetting},
};

static void calls(void)
{
    for (size_t k = 0; k < sizeof CALLS / sizeof CALLS[0]; k++) {
        work(20000);
        const int code = CALLS[k].call();
        if (fetestexcept(FE_ALL_EXCEPT) != 0)
            FAIL("%s leaves the flags %#x", CALLS[k].name, (unsigned)fetestexcept(FE_ALL_EXCEPT));
        td_must(code);
    }
}

int main(void)
{
    CHECK_EQ(feclearexcept(FE_ALL_EXCEPT), 0);
    for (int round = 0; round < ROUNDS; round++)
        calls();
    /* the same samples, however the program rounds */
    struct td_l1 nearest, upward;
    td_must(td_read(td, &from));
    work(50000);
    td_must(td_read(td, &to));
    td_must(td_decode_l1(&from, &to, &nearest));
    CHECK_EQ(fesetround(FE_UPWARD), 0);
    td_must(td_decode_l1(&from, &to, &upward));
    CHECK_EQ(fegetround(), FE_UPWARD);
    CHECK_EQ(fesetround(FE_TONEAREST), 0);
    CHECK_EQ(memcmp(&nearest, &upward, sizeof nearest), 0);
    CHECK_EQ(feclearexcept(FE_ALL_EXCEPT), 0);
    /* (arm64's CPUs need not trap, and Valgrind's does not) */
    if (feenableexcept(FE_ALL_EXCEPT) != -1 && fegetexcept() == FE_ALL_EXCEPT) {
        for (int round = 0; round < ROUNDS; round++)
            calls();
        CHECK_EQ(fegetexcept(), FE_ALL_EXCEPT);
    }
    td_close(td);
    return 0;
}
