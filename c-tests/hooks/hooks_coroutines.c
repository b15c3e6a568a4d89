/* Coroutines are suspended within hooked functions, end in another order than they began, and one in another thread than
 * it began in, which has ended. */
#include "hooks.h"
#include "lib/hooked.h"
#include <semaphore.h>
#include <ucontext.h>

#define COUNT 3
#define STACK 65536
#define ROUNDS 10000

static ucontext_t callers[COUNT], coroutines[COUNT];
static int steps[COUNT];

static void yield(int me) { swapcontext(&coroutines[me], &callers[me]); }
static void resume(int which) { swapcontext(&callers[which], &coroutines[which]); }

static int step(int me)
{
    yield(me);
    steps[me]++;
    CHECK_EQ(plain(me), me + 1);
    yield(me);
    return 10 * me;
}

static void run(int me)
{
    CHECK_EQ(call_back(step, me), 10 * me + 1);
    steps[me]++;
}

static int start_from_hooked(int which)
{
    resume(which);
    return which;
}

static void *begin(void *which)
{
    resume(*(int *)which);
    return NULL;
}

static void *finish(void *which)
{
    resume(*(int *)which);
    CHECK_EQ(factorial(2), 2); /* with entries of its own, as it goes on in between */
    resume(*(int *)which);
    CHECK_EQ(factorial(2), 2);
    return NULL;
}

static void start(int i)
{
    CHECK_EQ(getcontext(&coroutines[i]), 0);
    coroutines[i].uc_stack.ss_size = STACK;
    coroutines[i].uc_link = &callers[i];
    makecontext(&coroutines[i], (void (*)(void))run, 1, i);
}

static sem_t begun, done;

static void *finisher(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(sem_wait(&begun), 0);
        resume(0);
        resume(0);
        CHECK_EQ(sem_post(&done), 0);
    }
    return argument;
}

/* One thread begins them and another one ends them: what the library had for them is used again. */
static void hand_over(void)
{
    long before = address_space();
    CHECK_EQ(sem_init(&begun, 0, 0) | sem_init(&done, 0, 0), 0);
    pthread_t thread = start_thread(finisher, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        start(0);
        resume(0);
        CHECK_EQ(sem_post(&begun), 0);
        CHECK_EQ(factorial(2), 2);
        CHECK_EQ(sem_wait(&done), 0);
    }
    join_thread(thread);
    /* (the thread has the stack of one before it) entries for all of them are 600 */
    CHECK(address_space() - before < 400);
}

int main(void)
{
    if (measured("TOPDOWN_REGIONS", "call_back,plain,factorial")) {
        int last = 2;
        for (int i = 0; i < COUNT; i++) {
            CHECK((coroutines[i].uc_stack.ss_sp = malloc(STACK)) != NULL);
            start(i);
        }
        resume(0);
        CHECK_EQ(call_back(start_from_hooked, 1), 2);
        CHECK_EQ(factorial(3), 6);
        join_thread(start_thread(begin, &last));
        for (int turn = 0; turn < 2; turn++)
            for (int i = 0; i < 2; i++)
                resume(i);
        join_thread(start_thread(finish, &last));
        for (int i = 0; i < COUNT; i++) {
            CHECK_EQ(steps[i], 2);
        }
        hand_over();
        for (int i = 0; i < COUNT; i++) {
            free(coroutines[i].uc_stack.ss_sp);
        }
        return 0;
    }
    /* those that end in another thread than they began in did not end in theirs */
    REGION("call_back", 3, COUNT - 2 + ROUNDS);
    REGION("plain", COUNT + ROUNDS, 0);
    REGION("factorial", 3 + 2 + 2 + 2 * ROUNDS, 0);
    return 0;
}
