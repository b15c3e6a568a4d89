/* A child of fork returns through the hooked functions that its parent was in, fork among them. */
#include "hooks.h"
#include "lib/hooked.h"

static int forks(int x)
{
    int status = -1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        return -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 7 << 8);
    return x;
}

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "call_back,plain,libc.so.6:fork")) {
        if (call_back(forks, 5) == 0)
            _exit(plain(6));
        CHECK_EQ(plain(1), 2);
        return 0;
    }
    /* the child's, too, and of what began in the parent what the child executes of it */
    REGION("plain", 2, 0);
    REGION("fork", 2, 0);
    REGION("call_back", 2, 0);
    return 0;
}
