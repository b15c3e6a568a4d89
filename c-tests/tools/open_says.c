/* open_says CODE WORD [SETTING...]: what td_open says in a special environment, which the caller has made or a SETTING
 * makes. CODE is 0 or the name of an errno; WORD has to be in td_last_error, or with code 0 in the note of td_get_info.
 *   flags=N target=N id=N level=N   fields of td_options; id=parent stands for the id of the parent process
 *   path=N                          the path that is opened (with code 0)
 *   nofile=N memlock=N              RLIMIT_NOFILE, RLIMIT_MEMLOCK
 *   user=N                          from here on without any right, as this user
 *   seccomp=ERRNO                   a filter that answers perf_event_open with that errno, as container runtimes do
 * needs: arguments */
#include "pmu.h"
#include "sandbox.h"
#include <sys/resource.h>

static const struct {
    const char *name;
    int number;
} ERRNOS[] = {
    {"0", 0},           {"ENODEV", ENODEV}, {"EACCES", EACCES}, {"EPERM", EPERM}, {"ENOSYS", ENOSYS}, {"ENOTSUP", ENOTSUP},
    {"EINVAL", EINVAL}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"ESRCH", ESRCH},   {"ENFILE", ENFILE}, {"EBUSY", EBUSY},
};

static int number_of(const char *name)
{
    for (size_t i = 0; i < sizeof ERRNOS / sizeof ERRNOS[0]; i++)
        if (strcmp(name, ERRNOS[i].name) == 0)
            return ERRNOS[i].number;
    FAIL("%s: no errno that this program knows", name);
    return 0;
}

static void limit(int resource, rlim_t value)
{
    const struct rlimit limits = {value, value};
    CHECK_EQ(setrlimit((__rlimit_resource_t)resource, &limits), 0);
}

/* whether any file descriptor from 3 on is open */
static int any_descriptor(void)
{
    for (int fd = 3; fd < 64; fd++)
        if (dup2(fd, fd) == fd)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    struct td_options options = options_of(0, 0);
    unsigned long path = 0;
    if (argc < 3)
        SKIP("needs arguments: open_says CODE WORD [SETTING...]");
    const int code = -number_of(argv[1]);
    for (int fd = 3; fd < 64; fd++) /* what the caller left open */
        close(fd);
    for (int i = 3; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        CHECK(value++ != NULL);
        const long number = strcmp(value, "parent") == 0 ? (long)getppid() : strtol(value, NULL, 0);
#define IS(setting) (strncmp(argv[i], setting "=", sizeof setting) == 0)
        if (IS("flags"))
            options.flags = (uint32_t)number;
        else if (IS("target"))
            options.target = (uint32_t)number;
        else if (IS("id"))
            options.id = (int32_t)number;
        else if (IS("level"))
            options.level = (uint32_t)number;
        else if (IS("path"))
            path = (unsigned long)number;
        else if (IS("nofile"))
            limit(RLIMIT_NOFILE, (rlim_t)number);
        else if (IS("memlock"))
            limit(RLIMIT_MEMLOCK, (rlim_t)number);
        else if (IS("user"))
            CHECK_EQ(setresuid((uid_t)number, (uid_t)number, (uid_t)number), 0);
        else if (IS("seccomp"))
            CHECK_EQ(sandbox_answer(SYS_perf_event_open, number_of(value)), 0);
        else
            FAIL("%s: no such setting", argv[i]);
    }

    td_t *td = NULL;
    char text[1024] = "";
    const int said = td_open(&td, &options);
    if (said == 0)
        snprintf(text, sizeof text, "%s", info_of(td).note);
    else
        td_last_error(text, sizeof text);
    if (said != code)
        FAIL("td_open says %d (%s), not %s: %s", said, td_strerror(said), argv[1], text);
    if (strstr(text, argv[2]) == NULL)
        FAIL("not a word of '%s': %s", argv[2], text);
    if (path != 0)
        CHECK_EQ(info_of(td).path, path);
    if (said == 0) {
        struct td_sample sample;
        td_must(td_read(td, &sample));
        td_close(td);
    } else {
        CHECK(td == NULL);
    }
    CHECK_EQ(control_pages(), 0);
    CHECK(!any_descriptor()); /* neither a failure nor a close leaves something behind */
    return 0;
}
