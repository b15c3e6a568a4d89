/* Outputs are written on success only, whatever the reason for a failure: a closed handle, another thread's, samples that do
 * not go together, nothing counted, no level 2, a mark or a mix that is none. */
#include "calls.h"

static struct pointers pointers;
static struct pointees to;

/* Each call fails with this code, says something that has this word, and writes nothing. */
static void all_fail(const char *names, int expected, const char *word)
{
    for (int i = 0; i < CALLS_IN_ALL; i++) {
        char name[64];
        snprintf(name, sizeof name, " %s ", CALLS[i].name);
        if (strstr(names, name) == NULL)
            continue;
        const struct pointees before = to;
        const int code = CALLS[i].call(&pointers);
        if (code != expected || !last_error_with(word))
            FAIL("%s: %d (%s), not %d", CALLS[i].name, code, last_error_with(""), expected);
        if (memcmp(&before, &to, sizeof to) != 0)
            FAIL("%s: wrote something", CALLS[i].name);
    }
}

/* where a call may write, there is something to be seen */
static void prepare(td_t *td)
{
    pointers = good_pointers(td, &to);
    memset(&to.sample, 0x55, sizeof to.sample);
    memset(&to.l1, 0x55, sizeof to.l1);
    memset(&to.l2, 0x55, sizeof to.l2);
    memset(&to.info, 0x55, sizeof to.info);
    memset(&to.nodes, 0x55, sizeof to.nodes);
    to.count = 0x55;
    memset(&to.mark, 0, sizeof to.mark);
}

#define OF_HANDLES " td_read td_mark_read_slowly td_mark_sample td_reset td_sum_begin td_sum_end td_get_info td_list_nodes " \
                   "td_simulate_mix "
#define OF_SAMPLES " td_decode_l1 td_decode_l2 td_decode_tree td_decode_tree_as td_sum_add "

static void *another(void *unused)
{
    all_fail(OF_HANDLES, TD_EWRONGTHREAD, "thread");
    return unused;
}

int main(void)
{
    td_t *td = simulated(2), *other = simulated(2), *level_1 = simulated(1);
    struct td_sample sample;

    prepare(td);
    join_thread(start_thread(another, NULL));
    td_t *closed = simulated(2);
    td_close(closed);
    pointers.at[HANDLE] = closed;
    all_fail(OF_HANDLES, -EBADF, "closed");

    prepare(td);
    sample = to.earlier, to.earlier = to.later, to.later = sample;
    all_fail(OF_SAMPLES, -EINVAL, "order");
    prepare(td);
    to.earlier = to.later;
    all_fail(" td_decode_l1 td_decode_l2 td_decode_tree td_decode_tree_as ", TD_ENOTCOUNTING, "");
    prepare(td);
    td_must(td_read(other, &to.later));
    all_fail(OF_SAMPLES, -EINVAL, "different handles");
    prepare(td);
    td_must(td_reset(td));
    work(10000);
    td_must(td_read(td, &to.later));
    all_fail(OF_SAMPLES, TD_ESTALE, "td_reset");
    prepare(td);
    memset(&to.later, 0xff, sizeof to.later);
    all_fail(OF_SAMPLES, -EINVAL, "");

    prepare(td);
    all_fail(" td_sum_l1 td_sum_l2 td_sum_decode_tree ", TD_ENOTCOUNTING, "");
    prepare(level_1);
    td_must(td_sum_add(&to.sum, &to.earlier, &to.later));
    all_fail(" td_decode_l2 td_sum_l2 ", -ENOTSUP, "level 2");

    prepare(td);
    to.mark.slots = UINT64_MAX;
    all_fail(" td_mark_sample ", -EINVAL, "mark");
    to.mark.slots = 1000;
    to.mark.window = UINT32_MAX;
    all_fail(" td_mark_sample ", TD_ESTALE, "mark");
    prepare(td);
    to.mix.retiring = 2;
    all_fail(" td_simulate_mix ", -EINVAL, "mix");
    prepare(td);
    to.options.level = 4;
    all_fail(" td_open ", -EINVAL, "level");
    to.options.level = 0;
    to.options.reserved[4] = 1;
    all_fail(" td_open ", -E2BIG, "");
    to.options.reserved[4] = 0;
    to.options.flags |= TD_FLAG_KERNEL;
    all_fail(" td_open ", -ENOTSUP, "");

    td_close(level_1);
    td_close(other);
    td_close(td);
    return 0;
}
