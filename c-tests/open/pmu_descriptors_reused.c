/* A program closes descriptors that it does not know (close_range(2)) and opens its own in their places: no call on the handle reads,
 * changes or closes one of those, and the call says that the events are gone. */
#include "pmu.h"
#include <fcntl.h>
#include <sys/ioctl.h>

enum { MOST = 64, BYTES = 96 };
static int events[MOST], count;

static void look_for_events(void)
{
    count = 0;
    for (int fd = 3; fd < 256 && count < MOST; fd++) {
        char path[64], what[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(path, what, sizeof what - 1);
        if (length > 0 && strncmp(what, "anon_inode:[perf_event]", (size_t)length) == 0)
            events[count++] = fd;
    }
}

static void of(uint32_t flags)
{
    struct td_options options = options_of(flags, 0);
    struct td_sample sample;
    static const char bytes[BYTES];
    int ends[2], left = -1;
    td_t *td = measured(&options);
    td_must(td_read(td, &sample));
    look_for_events();
    CHECK(count > 0);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(write(ends[1], bytes, BYTES), BYTES);
    for (int k = 0; k < count; k++)
        CHECK_EQ(dup2(ends[0], events[k]), events[k]);
    CHECK_EQ(td_reset(td), -EBADF);
    CHECK(last_error_with("close"));
    for (int k = 0; k < 100; k++) {
        const int code = td_read(td, &sample);
        CHECK(code == 0 || code == -EBADF);
        work(100000);
    }
    td_close(td);
    CHECK_EQ(ioctl(ends[0], FIONREAD, &left), 0);
    CHECK_EQ(left, BYTES);
    for (int k = 0; k < count; k++) {
        CHECK(fcntl(events[k], F_GETFD) >= 0);
        close(events[k]);
    }
    close(ends[0]), close(ends[1]);
    CHECK_EQ(perf_descriptors(), 0);
}

int main(void)
{
    static const uint32_t FLAGS[] = {0, TD_FLAG_NO_RDPMC, TD_FLAG_KERNEL, TD_FLAG_INHERIT};
    for (size_t k = 0; k < sizeof FLAGS / sizeof FLAGS[0]; k++)
        of(FLAGS[k]);
    return 0;
}
