/* in_container COMMAND...: executes it where perf_event_open is answered with EPERM, as in a container.
 * needs: arguments */
#include "pmu.h"
#include "sandbox.h"

int main(int argc, char **argv)
{
    if (argc < 2)
        SKIP("needs arguments: in_container COMMAND...");
    CHECK_EQ(sandbox_answer(SYS_perf_event_open, EPERM), 0);
    execvp(argv[1], argv + 1);
    FAIL("%s: %s", argv[1], strerror(errno));
}
