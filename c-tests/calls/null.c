/* A NULL pointer is an error everywhere, never a crash, and nothing is written then. */
#include "calls.h"

int main(void)
{
    td_t *td = simulated(0);
    struct pointees good, to;
    struct pointers pointers = good_pointers(td, &good);
    all_succeed(&pointers, &good);
    pointers = good_pointers(td, &to);
    td_must(td_mark_read_slowly(td, &to.mark));
    td_must(td_sum_add(&to.sum, &to.earlier, &to.later));
    td_must(td_sum_begin(td, &to.sum));
    for (int i = 0; i < CALLS_IN_ALL; i++) {
        for (int set = 1; set < 1 << MOST_ARGUMENTS; set++) { /* of arguments that are NULL */
            struct pointers spoiled = pointers;
            int must = 0;
            for (int k = 0; k < MOST_ARGUMENTS; k++) {
                if (!(set & 1 << k))
                    continue;
                if (CALLS[i].argument[k].pointer < 0)
                    goto next;
                spoiled.at[CALLS[i].argument[k].pointer] = NULL;
                must |= CALLS[i].argument[k].role != FROM;
            }
            if (must) {
                const struct pointees before = to;
                const int code = CALLS[i].call(&spoiled);
                if (code != -EINVAL || !last_error_with("is NULL"))
                    FAIL("%s, set %d: %d (%s)", CALLS[i].name, set, code, last_error_with(""));
                if (memcmp(&before, &to, sizeof to) != 0)
                    FAIL("%s, set %d: wrote something", CALLS[i].name, set);
            }
        next:;
        }
    }
    CHECK_EQ(td_last_error(NULL, 1), -EINVAL);
    CHECK(td_last_error(NULL, 0) > 0);
    td_close(NULL);
    td_must(td_decode_l1(NULL, &to.later, &to.l1));
    td_must(td_decode_l2(NULL, &to.later, &to.l2));
    td_close(td);
    return 0;
}
