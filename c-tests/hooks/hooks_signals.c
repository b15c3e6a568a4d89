/* A signal handler interrupts hooked functions, and the library at work for them, and calls hooked functions itself. */
#include "hooks.h"
#include "lib/hooked.h"
#include <signal.h>
#include <sys/time.h>

#define ENOUGH 500
#define CALLS 100

static volatile sig_atomic_t handled;

static void handler(int signal)
{
    (void)signal;
    if (plain(handled) != handled + 1)
        abort();
    handled++;
}

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "plain,factorial,compare")) {
        struct sigaction action;
        struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
        memset(&action, 0, sizeof action);
        action.sa_handler = handler;
        action.sa_flags = SA_RESTART;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
        long turns = 0;
        for (; handled < ENOUGH || turns < CALLS; turns++) {
            CHECK_EQ(factorial(2), 2);
            work(20000); /* so that some signals come when the library is not at work */
        }
        setitimer(ITIMER_REAL, &never, NULL);
        for (int i = 0; i < CALLS; i++) {
            int x = i, y = CALLS / 2;
            CHECK_EQ(compare(&x, &y), (x > y) - (x < y));
        }
        return 0;
    }
    REGION("compare", CALLS, 0); /* it goes on as before */
    long unended;
    CHECK(executed("factorial", &unended) > CALLS && unended == 0);
    CHECK(executed("plain", &unended) > 0 && unended == 0);
    return 0;
}
