/* What is counted here, and how? */
#include <stdio.h>
#include <topdown.h>

int main(void)
{
    td_t *td;
    struct td_info info;

    if (td_open(&td, NULL)) {
        puts("SIMULATED: there are no counters here");
        if (td_simulate(&td, NULL, "Redwood Cove"))
            return 1;
    }
    if (td_get_info(td, &info))
        return 1;
    printf("%s: level %u, %u slots per cycle, %s\n", info.core,
           info.level, info.slots_per_cycle,
           info.path == TD_PATH_RDPMC ? "by RDPMC" : "not by RDPMC");
    if (info.note[0])
        puts(info.note);
    td_close(td);
    return 0;
}
