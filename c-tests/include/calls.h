/* calls.h: every exported function with good arguments, to be called with one of them spoiled. */
#ifndef CALLS_H
#define CALLS_H
#include "check.h"
#include <topdown_inline.h>

/* an argument that points to something; OUT is written to, INTO is changed, and FROM may be NULL */
enum { MOST_ARGUMENTS = 4, ROOM_FOR_NODES = 16 };
enum role { IN, OUT, INTO, FROM };
enum { HANDLE, OPTIONS, NEW_HANDLE, SAMPLE, EARLIER, LATER, MARK, SUM, L1, L2, INFO, MIX, NODES, COUNT, POINTERS };

/* The pointers of a call, good ones at first; the handle and the samples are the caller's. */
struct pointers {
    void *at[POINTERS];
};

struct call {
    const char *name;
    int (*call)(const struct pointers *);
    struct {
        int pointer;
        enum role role;
    } argument[MOST_ARGUMENTS]; /* that are pointers; those that are not there have role IN and pointer -1 */
};

#define AT(type, pointer) ((type *)p->at[pointer])
#define CALL(function, ...) static int calls_##function(const struct pointers *p) { return function(__VA_ARGS__); }
CALL(td_open, AT(td_t *, NEW_HANDLE), AT(struct td_options, OPTIONS))
CALL(td_read, AT(td_t, HANDLE), AT(struct td_sample, SAMPLE))
CALL(td_mark_read_slowly, AT(td_t, HANDLE), AT(struct td_mark, MARK))
CALL(td_mark_sample, AT(td_t, HANDLE), AT(struct td_mark, MARK), AT(struct td_sample, SAMPLE))
CALL(td_reset, AT(td_t, HANDLE))
CALL(td_decode_l1, AT(struct td_sample, EARLIER), AT(struct td_sample, LATER), AT(struct td_l1, L1))
CALL(td_decode_l2, AT(struct td_sample, EARLIER), AT(struct td_sample, LATER), AT(struct td_l2, L2))
CALL(td_decode_tree, AT(struct td_sample, EARLIER), AT(struct td_sample, LATER), AT(struct td_node, NODES), ROOM_FOR_NODES,
     AT(uint32_t, COUNT))
CALL(td_decode_tree_as, AT(struct td_sample, EARLIER), AT(struct td_sample, LATER), TD_AS_BARE, AT(struct td_node, NODES),
     ROOM_FOR_NODES, AT(uint32_t, COUNT))
CALL(td_list_nodes, AT(td_t, HANDLE), AT(struct td_node, NODES), ROOM_FOR_NODES, AT(uint32_t, COUNT))
CALL(td_decode_raw_l1, 0, 0, 1000, 0xff, AT(struct td_l1, L1))
CALL(td_decode_raw_l2, 0, 0, 1000, 0xffff0000ff, AT(struct td_l2, L2))
CALL(td_sum_add, AT(struct td_sum, SUM), AT(struct td_sample, EARLIER), AT(struct td_sample, LATER))
CALL(td_sum_begin, AT(td_t, HANDLE), AT(struct td_sum, SUM))
CALL(td_sum_end, AT(td_t, HANDLE), AT(struct td_sum, SUM))
CALL(td_sum_l1, AT(struct td_sum, SUM), AT(struct td_l1, L1))
CALL(td_sum_l2, AT(struct td_sum, SUM), AT(struct td_l2, L2))
CALL(td_sum_decode_tree, AT(struct td_sum, SUM), AT(struct td_node, NODES), ROOM_FOR_NODES, AT(uint32_t, COUNT))
CALL(td_get_info, AT(td_t, HANDLE), AT(struct td_info, INFO))
CALL(td_simulate_mix, AT(td_t, HANDLE), AT(struct td_mix, MIX))

/* All that return a code and take a pointer but td_last_error, whose pointer is bytes, and those of decode/made_up.c. In an order in which all succeed:
 * marks are read before they become samples, sums added to before they are decoded. */
#define NONE {-1, IN}
static const struct call CALLS[] = {
    {"td_open", calls_td_open, {{NEW_HANDLE, OUT}, {OPTIONS, FROM}, NONE, NONE}},
    {"td_read", calls_td_read, {{HANDLE, IN}, {SAMPLE, OUT}, NONE, NONE}},
    {"td_mark_read_slowly", calls_td_mark_read_slowly, {{HANDLE, IN}, {MARK, OUT}, NONE, NONE}},
    {"td_mark_sample", calls_td_mark_sample, {{HANDLE, IN}, {MARK, IN}, {SAMPLE, OUT}, NONE}},
    {"td_reset", calls_td_reset, {{HANDLE, IN}, NONE, NONE, NONE}},
    {"td_decode_l1", calls_td_decode_l1, {{EARLIER, FROM}, {LATER, IN}, {L1, OUT}, NONE}},
    {"td_decode_l2", calls_td_decode_l2, {{EARLIER, FROM}, {LATER, IN}, {L2, OUT}, NONE}},
    {"td_decode_tree", calls_td_decode_tree, {{EARLIER, FROM}, {LATER, IN}, {NODES, OUT}, {COUNT, OUT}}},
    {"td_decode_tree_as", calls_td_decode_tree_as, {{EARLIER, FROM}, {LATER, IN}, {NODES, OUT}, {COUNT, OUT}}},
    {"td_list_nodes", calls_td_list_nodes, {{HANDLE, IN}, {NODES, OUT}, {COUNT, OUT}, NONE}},
    {"td_decode_raw_l1", calls_td_decode_raw_l1, {{L1, OUT}, NONE, NONE, NONE}},
    {"td_decode_raw_l2", calls_td_decode_raw_l2, {{L2, OUT}, NONE, NONE, NONE}},
    {"td_sum_add", calls_td_sum_add, {{SUM, INTO}, {EARLIER, IN}, {LATER, IN}, NONE}},
    {"td_sum_begin", calls_td_sum_begin, {{HANDLE, IN}, {SUM, INTO}, NONE, NONE}},
    {"td_sum_end", calls_td_sum_end, {{HANDLE, IN}, {SUM, INTO}, NONE, NONE}},
    {"td_sum_l1", calls_td_sum_l1, {{SUM, IN}, {L1, OUT}, NONE, NONE}},
    {"td_sum_l2", calls_td_sum_l2, {{SUM, IN}, {L2, OUT}, NONE, NONE}},
    {"td_sum_decode_tree", calls_td_sum_decode_tree, {{SUM, IN}, {NODES, OUT}, {COUNT, OUT}, NONE}},
    {"td_get_info", calls_td_get_info, {{HANDLE, IN}, {INFO, OUT}, NONE, NONE}},
    {"td_simulate_mix", calls_td_simulate_mix, {{HANDLE, IN}, {MIX, IN}, NONE, NONE}},
};
enum { CALLS_IN_ALL = sizeof CALLS / sizeof CALLS[0] };

/* What the pointers point to. */
struct pointees {
    td_t *opened;
    struct td_options options;
    struct td_sample sample, earlier, later;
    struct td_mark mark;
    struct td_sum sum;
    struct td_l1 l1;
    struct td_l2 l2;
    struct td_info info;
    struct td_mix mix;
    struct td_node nodes[ROOM_FOR_NODES];
    uint32_t count;
};

static inline size_t size_of_pointee(int pointer)
{
    static const size_t SIZES[POINTERS] = {
        0, sizeof(struct td_options), sizeof(td_t *), sizeof(struct td_sample), sizeof(struct td_sample), sizeof(struct td_sample),
        sizeof(struct td_mark), sizeof(struct td_sum), sizeof(struct td_l1), sizeof(struct td_l2), sizeof(struct td_info),
        sizeof(struct td_mix), sizeof(struct td_node[ROOM_FOR_NODES]), sizeof(uint32_t)};
    return SIZES[pointer];
}

/* Good arguments: `td` is a simulated handle. */
static inline struct pointers good_pointers(td_t *td, struct pointees *to)
{
    const struct pointers pointers = {{td, &to->options, &to->opened, &to->sample, &to->earlier, &to->later, &to->mark, &to->sum,
                                       &to->l1, &to->l2, &to->info, &to->mix, to->nodes, &to->count}};
    memset(to, 0, sizeof *to);
    to->options.size = sizeof to->options;
    to->options.flags = TD_FLAG_SIMULATE;
    to->mix.size = sizeof to->mix;
    to->mix.retiring = 1;
    td_must(td_read(td, &to->earlier));
    work(10000);
    td_must(td_read(td, &to->later));
    return pointers;
}

/* With good arguments each succeeds. */
static inline void all_succeed(const struct pointers *pointers, struct pointees *to)
{
    for (int i = 0; i < CALLS_IN_ALL; i++) {
        const int code = CALLS[i].call(pointers);
        if (code != 0)
            FAIL("%s: %d (%s): %s", CALLS[i].name, code, td_strerror(code), last_error_with(""));
    }
    td_close(to->opened);
}
#endif
