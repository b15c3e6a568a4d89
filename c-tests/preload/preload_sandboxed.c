/* A program that is executed under a seccomp filter which kills for what the library does (installed by a system call instruction, which
 * nobody sees): with the library, and under `topdown run`, which says why it has no regions, it runs as without. */
#include "preload.h"
#include "sandbox.h"

/* Executes this program in the same case as "inside", under a filter that kills for these calls, or for all but these. */
static int executes(const int *calls, size_t count, int are_allowed, int by_prctl)
{
    struct sock_filter steps[64];
    const struct sock_fprog filter = sandbox_filter(steps, calls, count, are_allowed);
    char *arguments[] = {(char *)own_path(), "inside", preload_scratch, NULL};
    region("before", 100);
    fflush(stdout);
    if (by_prctl) { /* which the library sees */
        CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
        execv(arguments[0], arguments);
        return 2;
    }
    sandbox_execute(&filter, arguments, environ);
    return 2;
}
static int kills_for_the_librarys(void) { return executes(SANDBOX_OTHERS, SANDBOX_OTHER_CALLS, 0, 0); }
static int kills_for_all_else(void) { return executes(SANDBOX_PLAIN, SANDBOX_PLAIN_CALLS, 1, 0); }
static int kills_by_prctl(void) { return executes(SANDBOX_PLAIN, SANDBOX_PLAIN_CALLS, 1, 1); }

/* bwrap's way: what installs the filter is a process of its own, which no handler of fork has seen. */
static int kills_in_a_clone(void)
{
    fflush(stdout);
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        return executes(SANDBOX_PLAIN, SANDBOX_PLAIN_CALLS, 1, 1);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("%#x\n", status);
    region("before", 100);
    return 0;
}

/* What is executed under the filter. */
static int inside(void)
{
    region("inside", 100);
    CHECK_EQ(write(1, "alive\n", 6), 6);
    region("inside", 100);
    return 3;
}

/* Without a new filter the program that is executed is measured. */
static int has_none(void)
{
    char *arguments[] = {(char *)own_path(), "inside", preload_scratch, NULL};
    CHECK(!preloaded() || getenv("TOPDOWN_SECCOMP_FILTERS"));
    region("before", 100);
    fflush(stdout);
    execv(arguments[0], arguments);
    return 2;
}
static void before_report(const char *csv)
{
    EXECUTED(csv, "before", 100);
    CHECK_EQ(figure(csv, "inside", "executions"), -1);
}
static void both_report(const char *csv)
{
    EXECUTED(csv, "before", 100);
    EXECUTED(csv, "inside", 200);
}

static const struct preload_case CASES[] = {
    {"kills for its own calls", kills_for_the_librarys, before_report, NULL},
    {"kills for all else", kills_for_all_else, before_report, NULL},
    {"kills by prctl", kills_by_prctl, before_report, NULL},
    {"kills in a clone", kills_in_a_clone, before_report, NULL},
    {"has none", has_none, both_report, NULL},
};

/* `topdown run` of the same, in its own words. (Where musl's loader is, the GNU C library's calls readlink: docs/preload.md.) */
static void run_says_why(void)
{
    char line[3 * PATH_MAX], directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", own_path());
    snprintf(preload_release, sizeof preload_release, "%s/../release", dirname(directory));
    strcpy(preload_scratch, "/tmp/preload.XXXXXX");
    CHECK(mkdtemp(preload_scratch) != NULL);
    const char *of_a_sandbox = access("/lib/ld-musl-x86_64.so.1", F_OK) ? "kills for all else" : "kills for its own calls";
    for (int way = 0; way < 2; way++) {
        snprintf(line, sizeof line, "TOPDOWN_SIMULATE=1 '%s/topdown' run -o '%s/report.txt' '%s' '%s' '%s' > '%s/out' 2> '%s/err'", preload_release,
                 preload_scratch, own_path(), way ? of_a_sandbox : "has none", preload_scratch, preload_scratch, preload_scratch);
        const int status = system(line);
        const char *report = preload_text("report.txt");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 3 || strcmp(preload_text("out"), "alive\n") || *preload_text("err"))
            FAIL("%s: status %#x: %s%s", line, status, preload_text("out"), preload_text("err"));
        if ((strstr(report, "under a seccomp filter") != NULL) != way || (strstr(report, "inside") == NULL) != way)
            FAIL("%s: report\n%s", line, report);
    }
    preload_clean();
    preload_scratch[0] = 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "inside")) {
        snprintf(preload_scratch, sizeof preload_scratch, "%s", argv[2]);
        return inside();
    }
    const int code = preload_main(argc, argv, CASES, sizeof CASES / sizeof *CASES);
    if (code == 0 && argc == 1)
        run_says_why();
    return code;
}
