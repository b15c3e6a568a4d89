/* Wrong calls of td_record_start and td_record_stop get a code and a text that names what is wrong, whether counters are there or
 * not. Where they are refused nothing stays behind: no thread, no descriptor, no signal mask. */
#include "check.h"
#include <signal.h>
#include <topdown_record.h>

static char *last(void)
{
    static _Thread_local char text[1000];
    const int length = td_record_last_error(text, sizeof text);
    CHECK_EQ(length, strlen(text));
    return text;
}

#define CHECK_FAILS(call, code, part)                                                                                                  \
    do {                                                                                                                               \
        CHECK_EQ(call, code);                                                                                                          \
        if (strstr(last(), part) == NULL)                                                                                              \
            FAIL("%s: \"%s\", which has no \"%s\"", #call, last(), part);                                                              \
    } while (0)

static int entries(const char *directory)
{
    DIR *const open = opendir(directory);
    int n = 0;
    CHECK(open != NULL);
    while (readdir(open))
        n++;
    closedir(open);
    return n;
}

static void options(void)
{
    static const struct {
        struct td_record_options options;
        int code;
        const char *part;
    } wrong[] = {
        {{.size = 23}, -EINVAL, "options->size is 23; set it to sizeof(struct td_record_options)"},
        {{.size = 5000}, -E2BIG, "options->size is 5000"},
        {{.frequency = 2001}, -EINVAL, "options->frequency is 2001; use 1 to 2000, or 0 for the default"},
        {{.level = 3}, -EINVAL, "options->level is 3"},
        {{.max_overhead_ppm = 500001}, -EINVAL, "options->max_overhead_ppm is 500001"},
        {{.gap = 100001}, -EINVAL, "options->gap is 100001"},
        {{.reserved = {1}}, -E2BIG, "behind the fields that this version knows"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        CHECK_FAILS(td_record_start(&wrong[k].options), wrong[k].code, wrong[k].part);
    struct {
        struct td_record_options options;
        uint64_t later;
    } longer = {{.size = sizeof longer}, 1};
    CHECK_FAILS(td_record_start(&longer.options), -E2BIG, "behind the fields");
    uint64_t room[10] = {0};
    const void *const misaligned = (const char *)room + 1;
    CHECK_FAILS(td_record_start(misaligned), -EINVAL, "misaligned");
}

static void without_start(void)
{
    CHECK_FAILS(td_record_stop(NULL), -ENODATA, "nothing is being recorded; call td_record_start");
    CHECK_FAILS(td_record_stop("profile.xyz"), -ENODATA, "nothing is being recorded");
}

static void texts(void)
{
    char small[8];
    CHECK_EQ(td_record_last_error(NULL, 1), -EINVAL);
    CHECK_EQ(td_record_last_error(NULL, 0), strlen(last()));
    CHECK_EQ(td_record_last_error(small, sizeof small), strlen(last()));
    CHECK(strlen(small) == 7 && strncmp(small, last(), 7) == 0);
}

static void *many(void *refused)
{
    for (int k = 0; k < 20; k++) {
        const int began = td_record_start(NULL), ended = td_record_stop(NULL);
        CHECK(began == 0 || began == -EBUSY || began == *(const int *)refused);
        CHECK(ended == 0 || ended == -EBUSY || ended == -ENODATA);
    }
    return NULL;
}

int main(void)
{
    CHECK_EQ(strlen(last()), 0);
    without_start();
    options();
    texts();

    /* The first time makes what stays for good (memory of a thread). */
    int refused = td_record_start(NULL);
    CHECK(refused <= 0);
    if (refused == 0)
        CHECK_EQ(td_record_stop(NULL), 0);
    else
        CHECK(strlen(last()) > 20);
    const int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    sigset_t before, after;
    CHECK(sigprocmask(SIG_BLOCK, NULL, &before) == 0);
    for (int k = 0; k < 100; k++) {
        CHECK_EQ(td_record_start(NULL), refused);
        CHECK_EQ(td_record_stop(NULL), refused ? -ENODATA : 0);
    }
    pthread_t others[4];
    for (int k = 0; k < 4; k++)
        CHECK(pthread_create(&others[k], NULL, many, &refused) == 0);
    for (int k = 0; k < 4; k++)
        CHECK(pthread_join(others[k], NULL) == 0);
    CHECK(sigprocmask(SIG_BLOCK, NULL, &after) == 0 && memcmp(&before, &after, sizeof(long)) == 0);
    CHECK_EQ(entries("/proc/self/fd"), descriptors);
    /* (one that was joined is in the list until the kernel has done with it; so it may have been in the first one, too) */
    while (entries("/proc/self/task") > threads)
        sched_yield();

    int status;
    const pid_t child = fork();
    if (child == 0) {
        without_start();
        CHECK_EQ(td_record_start(NULL), refused);
        _exit(0); /* as it is */
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
