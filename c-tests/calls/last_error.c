/* td_last_error: each thread's own, cut to the buffer, with the length of the whole; td_strerror; td_version. */
#include "check.h"
#include <pthread.h>

static void *other(void *unused)
{
    char text[16];
    memset(text, 'x', sizeof text);
    CHECK_EQ(td_last_error(text, sizeof text), 0); /* nothing has failed in this thread */
    CHECK_EQ(text[0], 0);
    CHECK_EQ(td_reset(NULL), -EINVAL);
    CHECK(last_error_with("`td`"));
    return unused;
}

static void strerror_is(int code, const char *word)
{
    const char *text = td_strerror(code);
    CHECK(text != NULL && text[0] != 0);
    CHECK(td_strerror(code) == text); /* static */
    if (strstr(text, word) == NULL)
        FAIL("td_strerror(%d) is '%s', without '%s'", code, text, word);
}

int main(void)
{
    char whole[1024], cut[64];
    pthread_t thread;
    CHECK_EQ(td_last_error(whole, sizeof whole), 0);
    CHECK_EQ(whole[0], 0);
    CHECK_EQ(td_open(NULL, NULL), -EINVAL);
    int length = td_last_error(whole, sizeof whole);
    CHECK(length > 0);
    CHECK_EQ(strlen(whole), length);
    CHECK(strstr(whole, "`out`") != NULL);
    CHECK_EQ(td_last_error(NULL, 0), length);
    for (size_t room = 1; room <= sizeof cut; room++) {
        memset(cut, 'x', sizeof cut);
        CHECK_EQ(td_last_error(cut, room), length);
        size_t shown = (size_t)length < room ? (size_t)length : room - 1;
        CHECK_EQ(strlen(cut), shown);
        CHECK_EQ(memcmp(cut, whole, shown), 0);
        for (size_t i = shown + 1; i < sizeof cut; i++)
            CHECK_EQ(cut[i], 'x');
    }
    memset(cut, 'x', sizeof cut);
    CHECK_EQ(td_last_error(cut, 0), length);
    CHECK_EQ(cut[0], 'x');

    CHECK_EQ(pthread_create(&thread, NULL, other, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(last_error_with("`out`")); /* the other thread's failure is not ours */
    td_close(simulated(0));
    CHECK(last_error_with("`out`")); /* a success does not change it */

    strerror_is(0, "success");
    strerror_is(-ENODEV, "no topdown counters");
    strerror_is(-EACCES, "perf_event_paranoid");
    strerror_is(-EPERM, "seccomp");
    strerror_is(-ENOSYS, "perf_event_open");
    strerror_is(-ENOTSUP, "level");
    strerror_is(-EINVAL, "argument");
    strerror_is(-E2BIG, "options");
    strerror_is(-ESRCH, "thread");
    strerror_is(-EMFILE, "descriptors");
    strerror_is(-ENFILE, "descriptors");
    strerror_is(-ENOMEM, "memory");
    strerror_is(-EBUSY, "in use");
    strerror_is(-EBADF, "closed");
    strerror_is(TD_EWRONGTHREAD, "thread");
    strerror_is(TD_ENOTCOUNTING, "counted");
    strerror_is(TD_ESTALE, "reset");
    const int unknown[] = {1, -4096, -4100, -100000, 2147483647, -2147483647 - 1};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        strerror_is(unknown[i], "");

    int major, minor, patch, end = 0;
    CHECK_EQ(sscanf(td_version(), "%d.%d.%d%n", &major, &minor, &patch, &end), 3);
    CHECK_EQ(td_version()[end], 0);
    return 0;
}
