/* Event lists that are none: each is refused at once, with file, line and fault, in errno and in the details; nothing is
 * waited for, and no memory is filled. */
#define _GNU_SOURCE
#include "expect.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <jevents.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/bad-lists-XXXXXX", path[64];

static int never(void *data, char *name, char *event, char *desc, char *pmu)
{
    (void)data, (void)event, (void)desc, (void)pmu;
    FAIL("there is an event %s", name);
}

static char *file(const char *text)
{
    snprintf(path, sizeof path, "%s/list.json", directory);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
    return path;
}

/* Both functions that read a file, which say so on standard error. */
static void refused_with(int reason, const char *name, const char *where, const char *why)
{
    for (int function = 0; function < 2; function++) {
        FILE *said = tmpfile();
        char line[1024] = "";
        const int before = dup(2);
        CHECK(said != NULL && dup2(fileno(said), 2) == 2);
        errno = 0;
        const int code = function ? json_events(name, never, NULL) : read_events(name), error = errno;
        CHECK(dup2(before, 2) == 2 && close(before) == 0);
        rewind(said);
        CHECK(fgets(line, sizeof line, said) != NULL);
        fclose(said);
        line[strcspn(line, "\n")] = 0;
        CHECK_EQ(code, -EIO);
        CHECK_EQ(error, reason);
        if (strstr(line, name) == NULL || strstr(line, where) == NULL || strstr(line, why) == NULL)
            FAIL("%s: said '%s', not '%s ... %s'", name, line, where, why);
        CHECK(strcmp(jevent_get_error_details(), line) == 0);
    }
    CHECK(strcmp(jevent_error_to_string(-EIO), jevent_error_to_string(0)) != 0);
}

static void refused(const char *name, const char *where, const char *why) { refused_with(EIO, name, where, why); }

int main(void)
{
    const struct rlimit memory = {1 << 30, 1 << 30};
    struct perf_event_attr attr;
    CHECK(strcmp(jevent_get_error_details(), "") == 0);
    CHECK(mkdtemp(directory) != NULL);
#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
    CHECK_EQ(setrlimit(RLIMIT_AS, &memory), 0);
#endif
#endif
    (void)memory;
    alarm(60); /* what waits is ended */

    refused(file("{ \"Events\": [\n  { \"EventName\": \"A\", \"EventCode\": \"1\" },\n  { \"EventName\": }\n] }\n"), ":3:18: ", "expected value");
    refused(file("[ { \"EventName\": \"A\", \"EventCode\": \"1\" }\n"), ":2:", "EOF");
    refused(file("[ 7 ]"), ":1:", "expected an event");
    refused(file(""), "", "empty");
    CHECK_EQ(truncate(path, 1L << 40), 0); /* no such amount is on the disk */
    refused(path, "", "more than any event list");
    CHECK_EQ(unlink(path), 0);
    refused_with(ENOENT, path, "", "No such file");
    if (geteuid() == 0) { /* whom nothing is denied */
        CHECK(seteuid(65534) == 0);
        refused_with(EACCES, path, "", "Permission denied");
        CHECK(seteuid(0) == 0);
    }
    CHECK_EQ(mkfifo(path, 0600), 0);
    refused(path, "", "not a regular file");
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(directory), 0);
    refused("/tmp", "", "not a regular file");
    refused("/dev/zero", "", "not a regular file");
    refused("/dev/tty", "", "");
    if (access("/proc/kmsg", F_OK) == 0)
        refused("/proc/kmsg", "", "empty, or has no size");

    /* what an unknown event was is told, too, though nothing is said */
    CHECK_EQ(resolve_event("no_such_event", &attr), -1);
    CHECK(strstr(jevent_get_error_details(), "no_such_event") != NULL);
    CHECK(strcmp(jevent_error_to_string(0), "Success") == 0);
    CHECK(strcmp(jevent_error_to_string(-12345), "Unknown error") == 0);
    CHECK(strcmp(jevent_error_to_string(-2147483647 - 1), "Unknown error") == 0);
    CHECK(strcmp(jevent_error_to_string(JEV_GENERIC_ERROR), jevent_error_to_string(JEV_NO_PMU_EVENTS_FILE)) != 0);
    return 0;
}
