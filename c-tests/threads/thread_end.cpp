// The destructors that run as a thread ends, and as the program ends, may use and close the handle of their thread, and
// open one; in another thread's they are refused.
#include "check.h"
#include <topdown_inline.h>
#ifndef OPEN
#define OPEN() simulated(0) // pmu_thread_end.cpp has another
#endif

static int ran; // destructors, in all

static void use(td_t *td)
{
    td_sample before{}, after{};
    td_l1 l1{};
    td_mark mark{};
    td_must(td_read(td, &before));
    work(10000);
    td_must(td_read(td, &after));
    CHECK(after.slots > before.slots);
    td_must(td_decode_l1(&before, &after, &l1));
    td_must(td_read_mark(td, &mark));
    td_must(td_mark_sample(td, &mark, &after));
    td_must(td_reset(td));
    CHECK_EQ(td_read(td, nullptr), -EINVAL);
    CHECK(last_error_with("NULL"));
    ran++;
}

struct local {
    td_t *td = nullptr;
    ~local() { use(td); }
};
static thread_local local of_thread;
static pthread_key_t key;

// after those of C++, and again as long as it wants to, four times at most
static void at_end_of_thread(void *td)
{
    static int round; // one thread after the other
    use(static_cast<td_t *>(td));
    if (++round < 3) {
        CHECK_EQ(pthread_setspecific(key, td), 0);
        return;
    }
    round = 0;
    td_close(static_cast<td_t *>(td));
    td_sample sample;
    CHECK_EQ(td_read(static_cast<td_t *>(td), &sample), -EBADF);
}

static void *opener(void *)
{
    of_thread.td = OPEN();
    CHECK_EQ(pthread_setspecific(key, of_thread.td), 0);
    use(of_thread.td);
    return nullptr;
}

static pthread_key_t foreign_key, first_key;

static void at_end_of_another(void *td)
{
    td_sample sample;
    CHECK_EQ(td_read(static_cast<td_t *>(td), &sample), TD_EWRONGTHREAD);
    CHECK_EQ(td_reset(static_cast<td_t *>(td)), TD_EWRONGTHREAD);
    ran++;
}

static void *another(void *td)
{
    CHECK_EQ(pthread_setspecific(foreign_key, td), 0);
    return nullptr;
}

// a handle of its own, in a thread that had none
static void first_call(void *)
{
    td_t *own = OPEN();
    use(own);
    td_close(own);
}

static void *silent(void *)
{
    CHECK_EQ(pthread_setspecific(first_key, &first_key), 0);
    return nullptr;
}

static td_t *of_main;
struct last_of_all {
    ~last_of_all() // after main
    {
        use(of_main);
        td_close(of_main);
        first_call(nullptr);
    }
};
static last_of_all last;

int main()
{
    CHECK_EQ(pthread_key_create(&key, at_end_of_thread), 0);
    CHECK_EQ(pthread_key_create(&foreign_key, at_end_of_another), 0);
    CHECK_EQ(pthread_key_create(&first_key, first_call), 0);
    of_main = OPEN();
    for (int i = 0; i < 20; i++) {
        ran = 0;
        join_thread(start_thread(opener, nullptr));
        CHECK_EQ(ran, 1 + 1 + 3);
        join_thread(start_thread(another, of_main));
        join_thread(start_thread(silent, nullptr));
        CHECK_EQ(ran, 5 + 2);
    }
    use(of_main);
    of_thread.td = of_main; // the main thread has destructors, too
    return 0;
}
