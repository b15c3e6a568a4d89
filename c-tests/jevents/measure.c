/* measure.h and interrupts.h where nothing can be opened: what they say and do then. pmu_measure.c is where it can. */
#define EVENT_MACROS
#include <interrupts.h>
#include <measure.h>

#include "counters.h"
#include <sys/wait.h>

static unsigned long long nothing(struct measure *m, unsigned long long total[N_COUNTER], int i)
{
    (void)m;
    return total[i];
}

static struct measure group[N_COUNTER] = {ETO0(0xc0), E(0xc0), ETO(0xc0, 2), EFUNC(0xc0, 1, nothing)};

/* the library calls this one; `opens`: an event that is there without counters */
static int opens;
int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
    if (opens) {
        attr->type = PERF_TYPE_SOFTWARE;
        attr->config = PERF_COUNT_SW_TASK_CLOCK;
        return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);
    }
    errno = EMFILE;
    return -1;
}

static void at_exit(void)
{
    measure_group_finish();
    measure_print_all(stdout);
}

static int all_of(int fd, char *text, size_t size)
{
    size_t length = 0;
    for (ssize_t got; length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0;)
        length += (size_t)got;
    return length > 0;
}

/* A child that is forked while a group is measured has no counters: it adds nothing. */
static void in_a_child(void)
{
    int status;
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, 0);
    opens = 1;
    const int fd = perf_event_open(&attr, 0, -1, -1, 0);
    if (fd < 0)
        SKIP("no events: %s", strerror(errno));
    close(fd);
    measure_group_init(group, "a child");
    measure_group_start();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char *text = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);
        measure_group_stop();
        measure_group_finish();
        measure_print_all(out);
        fclose(out);
        const char *total = text ? strchr(text, '\t') : NULL;
        CHECK(total != NULL);
        CHECK_EQ(strtoull(total + 1, NULL, 10), 0);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    measure_group_finish();
    measure_free_all();
}

int main(void)
{
    char said[4096] = "";
    int status, out[2];

    CHECK_EQ(get_interrupts(), 0);
    interrupts_exit();

    /* without a group nothing happens */
    measure_group_start();
    measure_group_stop();
    measure_group_finish();
    measure_group_init(NULL, "none");
    measure_print_all(stdout);
    measure_print_all(NULL);
    measure_free_all();

    CHECK_EQ(group[0].ratio_to, 0);
    CHECK_EQ(group[1].ratio_to, -1);
    CHECK_EQ(group[2].ratio_to, 2);
    CHECK(group[3].func == nothing);

    CHECK_EQ(pipe(out), 0);
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(out[1], 2);
        interrupts_init();
        CHECK_EQ(get_interrupts(), 0);
        interrupts_exit();
        atexit(at_exit);
        measure_group_init(group, "impossible");
        _exit(3);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    close(out[1]);
    CHECK(all_of(out[0], said, sizeof said));
    if (strstr(said, "perf_event_open: Too many open files") == NULL)
        FAIL("it says %s", said);
    in_a_child();
    return 0;
}
