/* A forked child has copies of the descriptors. What its parent closes does not go on counting for their sake: the next
 * handle has the counters to itself. */
#include "pmu.h"

int main(void)
{
    struct td_options options = {0};
    options.size = sizeof options;
    for (int path = 0; path < 2; path++) {
        options.flags = path ? TD_FLAG_NO_RDPMC : 0;
        td_t *td = measured(&options);
        int ends[2];
        CHECK_EQ(pipe(ends), 0);
        const pid_t pid = fork();
        if (pid == 0) {
            char byte;
            close(ends[1]);
            _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* until the parent is through */
        }
        td_close(td);
        for (int i = 0; i < 10; i++) {
            struct td_sample before, after;
            struct td_l1 l1;
            td = measured(&options);
            td_must(td_read(td, &before));
            work(20000000); /* several rotations of groups that alternate */
            td_must(td_read(td, &after));
            td_must(td_decode_l1(&before, &after, &l1));
            CHECK(l1.running == 1);
            td_close(td);
        }
        close(ends[0]);
        close(ends[1]);
        child_is_well(pid);
    }
    return 0;
}
