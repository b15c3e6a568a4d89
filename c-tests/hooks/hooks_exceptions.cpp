// C++ exceptions, pthread_exit and cancellation go through hooked functions, which end; so do backtraces, which do not.
#include "hooks.h"
#include "lib/hooked.h"
#include <execinfo.h>
#include <semaphore.h>
#include <stdexcept>

namespace {
int destroyed;

struct guard {
    ~guard() { destroyed++; }
};

int thrower(int x)
{
    guard here;
    if (x < 0)
        throw std::runtime_error("negative");
    return x;
}

int rethrower(int x)
{
    guard here;
    try {
        return call_back(thrower, x);
    } catch (const std::runtime_error &) {
        destroyed += 100;
        throw;
    }
}

[[gnu::noinline]] int not_the_catcher(int x)
{
    guard here;
    return call_back(thrower, x) + 1;
}

void *frames[100];
int found;

int look_back(int)
{
    found = backtrace(frames, 100);
    return 0;
}

[[gnu::noinline]] int caller_of_hooked(void) { return call_back(look_back, 0) + 1; }

int leave_thread(int)
{
    guard here;
    pthread_exit(nullptr);
}

sem_t inside;

int wait_for_ever(int fd)
{
    guard here;
    sem_post(&inside);
    char byte;
    return static_cast<int>(read(fd, &byte, 1)); // a cancellation point
}

int between(int fd) { return call_back(wait_for_ever, fd); }

void *exits(void *) { return call_back(leave_thread, 0), nullptr; }
void *is_cancelled(void *fd) { return call_back(between, *static_cast<int *>(fd)), nullptr; }

template <typename F> bool throws(F function)
{
    try {
        function();
    } catch (const std::runtime_error &error) {
        return strcmp(error.what(), "negative") == 0;
    }
    return false;
}

void body()
{
    CHECK(throws([] { call_back(thrower, -1); }));          // caught by the caller
    CHECK_EQ(destroyed, 1);
    CHECK(throws([] { call_back(not_the_catcher, -1); }));  // further out, through two of them
    CHECK_EQ(destroyed, 3);
    CHECK(throws([] { call_back(rethrower, -1); }));        // on the way, and once more
    CHECK_EQ(destroyed, 105);
    for (int i = 0; i < 100; i++)
        CHECK(throws([] { call_back(thrower, -1); }));
    CHECK_EQ(call_back(thrower, 5), 6);
    CHECK_EQ(destroyed, 206);
    for (int i = 0; i < 10; i++)
        CHECK(throws([] { tail_back(thrower, -1); }));      // one frame, of two of them
    CHECK_EQ(destroyed, 216);
    destroyed = 206;

    caller_of_hooked();
    bool through = false;
    for (int i = 0; i < found; i++) {
        const auto from = reinterpret_cast<const char *>(&caller_of_hooked);
        const auto frame = static_cast<const char *>(frames[i]);
        through = through || (frame > from && frame < from + 100);
    }
    CHECK(through);

    join_thread(start_thread(exits, nullptr));
    CHECK_EQ(destroyed, 207);

    int pipe_ends[2];
    CHECK_EQ(pipe(pipe_ends), 0);
    CHECK_EQ(sem_init(&inside, 0, 0), 0);
    const pthread_t thread = start_thread(is_cancelled, pipe_ends);
    CHECK_EQ(sem_wait(&inside), 0);
    CHECK_EQ(pthread_cancel(thread), 0);
    void *result = nullptr;
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK_EQ(destroyed, 208);
}
} // namespace

int main()
{
    if (measured("TOPDOWN_REGIONS", "call_back,tail_back")) {
        body();
        return 0;
    }
    REGION("call_back", 1 + 2 + 2 + 100 + 1 + 10 + 1 + 1 + 2, 0);
    REGION("tail_back", 10, 0);
    return 0;
}
