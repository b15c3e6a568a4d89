/* The report at a program's end is made by the command topdown, in a process of its own: where the command is found, what
 * becomes of the figures if it is not, and that the program notices nothing. The library has none of its code. */
#include "preload.h"
#include <stdarg.h>
#include <sys/time.h>

static char library[2 * PATH_MAX], command[2 * PATH_MAX], report[PATH_MAX + 20];

static void on_child(int signal)
{
    (void)signal;
    CHECK(write(1, "SIGCHLD\n", 8) == 8);
}

static void on_alarm(int signal)
{
    (void)signal;
}

static void *waits(void *unused)
{
    for (;;) {
        if (waitpid(-1, NULL, 0) > 0)
            CHECK(write(1, "a child\n", 8) == 8);
        usleep(100);
    }
    return unused;
}

/* Several threads end the process at once, with signals all the time: the others end it no sooner than the first has its report. */
enum { AT_ONCE = 8 };
static pthread_barrier_t all_there;
static void (*the_end)(int);
static void *ends(void *unused)
{
    pthread_barrier_wait(&all_there);
    the_end(7);
    return unused;
}
static void ends_at_once(void (*by)(int))
{
    const struct itimerval often = {{0, 1000}, {0, 1000}};
    the_end = by;
    signal(SIGALRM, on_alarm);
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    CHECK_EQ(pthread_barrier_init(&all_there, NULL, AT_ONCE), 0);
    for (int k = 1; k < AT_ONCE; k++)
        start_thread(ends, NULL);
    ends(NULL);
}

/* Regions, and a program that would notice a child. */
static int program(const char *how)
{
    region("inside", 3);
    if (!strcmp(how, "ignores"))
        signal(SIGCHLD, SIG_IGN);
    else
        signal(SIGCHLD, on_child);
    if (!strcmp(how, "waits"))
        pthread_detach(start_thread(waits, NULL));
    puts("done");
    fflush(stdout);
    if (!strcmp(how, "_exit at once"))
        ends_at_once(_exit);
    if (!strcmp(how, "quick_exit at once"))
        ends_at_once(quick_exit);
    if (!strcmp(how, "exit at once"))
        ends_at_once(exit);
    return 7;
}

/* Runs the program with this library, and with this command named, if it is not NULL; its standard error. */
static const char *ran(const char *how, const char *preload, const char *named)
{
    char path[PATH_MAX + 20];
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int fd = 1; fd < 3; fd++) {
            snprintf(path, sizeof path, "%s/%s", preload_scratch, fd == 1 ? "out" : "err");
            CHECK_EQ(dup2(open(path, O_CREAT | O_WRONLY | O_TRUNC | O_APPEND, 0644), fd), fd);
        }
        snprintf(path, sizeof path, "%s/tmp", preload_scratch);
        setenv("TMPDIR", path, 1);
        unsetenv("XDG_RUNTIME_DIR");
        setenv("LD_PRELOAD", preload, 1);
        setenv("TOPDOWN_SIMULATE", "1", 1);
        setenv("TOPDOWN_OUTPUT", report, 1);
        if (named)
            setenv("TOPDOWN_COMMAND", named, 1);
        execl(own_path(), own_path(), "program", how, (char *)NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 7 << 8);
    if (strcmp(preload_text("out"), "done\n"))
        FAIL("%s: it printed\n%s", how, preload_text("out"));
    return preload_text("err");
}

static void shell(const char *format, ...)
{
    char line[6 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (system(line))
        FAIL("failed: %s", line);
}

/* There is a report, nothing was said, and no table is left. */
static void reported(const char *how, const char *preload, const char *named)
{
    const char *said = ran(how, preload, named);
    if (*said)
        FAIL("%s: said %s", how, said);
    EXECUTED(preload_text("report.csv"), "inside", 3);
    shell("rmdir '%s/tmp' && mkdir '%s/tmp' && rm '%s'", preload_scratch, preload_scratch, report);
}

/* There is none, and the only line says this; the figures are where it says, and the report can be made. */
static void not_reported(const char *preload, const char *named, const char *part)
{
    char *said = strdup(ran("quietly", preload, named));
    const char *line = strdup(said);
    if (!preload_take_line(said, part) || *said || access(report, F_OK) == 0)
        FAIL("said, for '%s':\n%s", part, line);
    CHECK(strstr(line, "no report in ") && strstr(line, report));
    shell("'%s' report -o '%s' '%s'/tmp/topdown-*/*.topdown", command, report, preload_scratch);
    EXECUTED(preload_text("report.csv"), "inside", 3);
    shell("rm -r '%s'/tmp/topdown-* '%s'", preload_scratch, report);
}

/* A command made for the purpose. */
static const char *script(const char *text)
{
    static char path[PATH_MAX + 20];
    snprintf(path, sizeof path, "%s/script", preload_scratch);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, 0755) == 0);
    return path;
}

/* Where the command is found, and where not. */
static void places(void)
{
    static const char *const BESIDE[][2] = {{"a/libtopdown-preload.so", "a/topdown"},
                                            {"b/lib/libtopdown-preload.so", "b/bin/topdown"},
                                            {"c/lib/x86_64-linux-gnu/libtopdown-preload.so", "c/bin/topdown"}};
    char copy[PATH_MAX + 100];
    for (size_t k = 0; k < sizeof BESIDE / sizeof *BESIDE; k++) {
        snprintf(copy, sizeof copy, "%s/%s", preload_scratch, BESIDE[k][0]);
        shell("cd '%s' && mkdir -p $(dirname %s) $(dirname %s) && cp -L '%s' %s", preload_scratch, BESIDE[k][0], BESIDE[k][1],
              library, BESIDE[k][0]);
        not_reported(copy, NULL, "TOPDOWN_COMMAND");
        not_reported(copy, "/nowhere/topdown", "(/nowhere/topdown)");
        not_reported(copy, "/etc/passwd", "cannot be executed: Permission denied");
        reported("another", copy, command);
        shell("ln -s '%s' '%s/%s'", command, preload_scratch, BESIDE[k][1]);
        reported("beside", copy, NULL);
    }
    /* the line has the command that makes the report */
    shell("rm '%s/a/topdown'", preload_scratch);
    snprintf(copy, sizeof copy, "%s/a/libtopdown-preload.so", preload_scratch);
    char *line = strdup(ran("told", copy, NULL)), *told = strchr(line, '`');
    CHECK(told && strrchr(line, '`') > told && !strncmp(told, "`topdown report -o ", 19));
    *strrchr(line, '`') = 0;
    shell("'%s' %s", command, told + sizeof "`topdown");
    EXECUTED(preload_text("report.csv"), "inside", 3);
    shell("rm -r '%s'/tmp/topdown-* '%s'", preload_scratch, report);
}

/* Whatever the command does, one line says why there is no report, and the program ends as ever. */
static void failures(void)
{
    not_reported(library, script("#!/bin/sh\necho 'memory allocation of 7 bytes failed' >&2; echo more >&2; exit 127\n"),
                 "memory allocation of 7 bytes failed; the figures");
    not_reported(library, script("#!/bin/sh\nkill -KILL $$\n"), "wait status 0x9");
    not_reported(library, script("#!/bin/sh\nexit 2\n"), "wait status 0x200");
    not_reported(library, script("#!/nowhere/sh\n"), "is not there");
    /* what it says itself is passed on; nothing of the program's is preloaded into it, and it is asked for this run */
    char line[5 * PATH_MAX];
    snprintf(line, sizeof line, "#!/bin/sh\nexport -p > '%s/environment'\necho \"$@\" > '%s/arguments'\n"
             "echo \"topdown: no report in %s: so it is\" >&2; exit 1\n", preload_scratch, preload_scratch, report);
    not_reported(library, script(line), "so it is");
    CHECK(!strstr(preload_text("environment"), "LD_PRELOAD") && !strstr(preload_text("environment"), "TOPDOWN_OUTPUT"));
    /* where the library is loaded into the command all the same, there is no report of the report */
    snprintf(line, sizeof line, "#!/bin/sh\nLD_PRELOAD='%s' TOPDOWN_SIMULATE=1 exec '%s' \"$@\"\n", library, command);
    reported("preloaded", library, script(line));
    CHECK(!strncmp(preload_text("arguments"), "report --run ", 13) && strstr(preload_text("arguments"), report));
}

/* The library has nothing of the code that makes reports, nor of what that takes. */
static void contents(void)
{
    static const char *const NONE[] = {"<!DOCTYPE", "<html", "</script", "serde", "<svg", "wasted slots"};
    struct stat about;
    const int fd = open(library, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &about) == 0);
    char *all = malloc((size_t)about.st_size);
    CHECK(all && read(fd, all, (size_t)about.st_size) == about.st_size);
    close(fd);
    for (size_t k = 0; k < sizeof NONE / sizeof *NONE; k++) {
        if (memmem(all, (size_t)about.st_size, NONE[k], strlen(NONE[k])))
            FAIL("%s has '%s' in it", library, NONE[k]);
    }
    CHECK(memmem(all, (size_t)about.st_size, "TOPDOWN_COMMAND", 15));
    free(all);
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "program"))
        return program(argv[2]);
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", own_path());
    const char *up = dirname(directory);
    snprintf(library, sizeof library, "%s/../release/libtopdown-preload.so", up);
    snprintf(command, sizeof command, "%s/../release/topdown", up);
    if (access(library, R_OK) || access(command, X_OK))
        SKIP("%s is not there", library);
    unsetenv("LD_PRELOAD");
    unsetenv("TOPDOWN_COMMAND");
    strcpy(preload_scratch, "/tmp/preload.XXXXXX");
    CHECK(mkdtemp(preload_scratch) != NULL);
    atexit(preload_clean);
    snprintf(report, sizeof report, "%s/report.csv", preload_scratch);
    shell("mkdir '%s/tmp'", preload_scratch);
    contents();
    static const char *const HOW[] = {"handles", "ignores", "waits", "_exit at once", "quick_exit at once", "exit at once"};
    for (size_t k = 0; k < sizeof HOW / sizeof *HOW; k++)
        reported(HOW[k], library, NULL);
    places();
    failures();
    return 0;
}
