/* Programs that share a CPU and its counters: a thread that comes back to registers which hold another's slots does not
 * take them for its own. Two threads that read themselves by read(2); and one that mostly sleeps, measured by another. */
#include "pmu.h"
#include <pthread.h>
#include <sys/wait.h>

enum { HANDFUL = 65536 }; /* foreign slots below that in a window may be counted, and are in `error` */
static int cpu;

struct reader {
    struct vm_mix mix;
    uint64_t instructions;
    double slots; /* the outcome */
};

static void *reads_itself(void *argument)
{
    struct reader *reader = (struct reader *)argument;
    const struct td_options options = options_of(TD_FLAG_NO_RDPMC, 0);
    enum { ROUNDS = 5000 };
    struct td_sample first, last, now;
    struct td_l1 l1;
    td_t *td = NULL;
    int telling = 0;
    move_to(0, cpu);
    td_must(td_open(&td, &options));
    const double width = info_of(td).slots_per_cycle;
    mix_is(reader->mix);
    td_must(td_read(td, &first));
    last = first;
    for (int i = 0; i < ROUNDS; i++) {
        work(reader->instructions);
        td_must(td_read(td, &now));
        if (td_decode_l1(&last, &now, &l1) == 0) {
            l1_is(&l1, reader->mix, 1);
            CHECK((double)l1.slots <= ((double)reader->instructions + 6000) * width + HANDFUL);
            telling += l1.error < 0.1;
        }
        last = now;
    }
    CHECK(telling > ROUNDS / 2);
    reader->slots = (double)(last.slots - first.slots);
    td_close(td);
    return NULL;
}

/* as many slots together as each has alone */
static void readers(void)
{
    struct reader reader[2] = {{MIXES[0], 20000, 0}, {MIXES[2], 40000, 0}};
    double alone[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, reads_itself, &reader[i]), 0);
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
        alone[i] = reader[i].slots;
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, reads_itself, &reader[i]), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        printf("reader %d: %.5f of the slots it has alone\n", i, reader[i].slots / alone[i]);
        CHECK_NEAR(reader[i].slots / alone[i], 1, 0.05);
    }
}

/* the same of two processes: the kernel clears SLOTS of what another left there, but not PERF_METRICS */
static void processes(void)
{
    struct reader reader[2] = {{MIXES[0], 20000, 0}, {MIXES[2], 30000, 0}};
    int status;
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            reads_itself(&reader[i]);
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        CHECK(wait(&status) > 0);
        CHECK_EQ(status, 0);
    }
}

enum { INSTRUCTIONS = 3000 };
static volatile int stop, tid, rounds;

static void *sleeps(void *unused)
{
    const struct timespec moment = {0, 100000};
    static unsigned char buffer[1 << 16];
    FILE *random = fopen("/dev/urandom", "r");
    CHECK(random != NULL);
    move_to(0, cpu);
    mix_is(MIXES[0]);
    tid = (int)syscall(SYS_gettid);
    while (!stop) {
        work(INSTRUCTIONS);
        rounds = rounds + 1;
        CHECK(read(fileno(random), buffer, sizeof buffer) > 0); /* runs in the kernel, where nothing counts */
        nanosleep(&moment, NULL);
    }
    fclose(random);
    return unused;
}

static void *competing(void *unused)
{
    const struct timespec moment = {0, 20000};
    struct td_sample sample;
    td_t *td = NULL;
    move_to(0, cpu);
    td_must(td_open(&td, NULL));
    mix_is(MIXES[2]);
    while (!stop) {
        work(200000);
        td_must(td_read(td, &sample));
        nanosleep(&moment, NULL);
    }
    td_close(td);
    return unused;
}

static void sleeper(int with_other)
{
    enum { REGIONS = 400 };
    struct td_options options = options_of(0, 0);
    struct td_sample before, after;
    struct td_l1 l1;
    pthread_t thread[2];
    td_t *td = NULL;
    int telling = 0;
    stop = 0, tid = 0;
    CHECK_EQ(pthread_create(&thread[0], NULL, sleeps, NULL), 0);
    if (with_other)
        CHECK_EQ(pthread_create(&thread[1], NULL, competing, NULL), 0);
    while (tid == 0)
        usleep(1000);
    options.target = TD_TARGET_TASK;
    options.id = tid;
    td_must(td_open(&td, &options));
    const double width = info_of(td).slots_per_cycle;
    for (unsigned i = 0; i < REGIONS; i++) {
        td_must(td_reset(td));
        const int begun = rounds;
        td_must(td_read(td, &before));
        for (int k = 0; k < 8; k++) {
            usleep(200 + i % 97);
            td_must(td_read(td, &after));
        }
        const double worked = (rounds - begun + 1) * (INSTRUCTIONS + 1000) * width;
        if (td_decode_l1(&before, &after, &l1) != 0)
            continue;
        l1_is(&l1, MIXES[0], 1);
        CHECK((double)l1.slots <= worked + HANDFUL);
        telling += l1.error < 0.5;
    }
    printf("%d of %d telling\n", telling, REGIONS);
    CHECK(with_other || telling > REGIONS / 2); /* what another reader leaves behind may stay in a sleeper's registers */
    stop = 1;
    CHECK_EQ(pthread_join(thread[0], NULL), 0);
    if (with_other)
        CHECK_EQ(pthread_join(thread[1], NULL), 0);
    td_close(td);
}

int main(void)
{
    cpu = p_core() < 0 ? 0 : p_core();
    td_close(measured(NULL));
    needs_known_mix();
    readers();
    processes();
    sleeper(0);
    sleeper(1);
    return 0;
}
