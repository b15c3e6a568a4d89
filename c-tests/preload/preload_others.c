/* Other users of a shared directory, as /tmp is, neither hang, silence nor falsify what is measured there: whatever they put
 * in the places that can be foreseen, the program ends as it would, and its report has its own regions alone. */
#include "preload.h"
#include <grp.h>

static const char *leftovers; /* a directory of the victim's, for tables that crashed processes of the same pids left */
enum { VICTIM = 65533, OTHER = 65534, NAMES = 150 };
static char shared[PATH_MAX], library[2 * PATH_MAX];

/* What the measured program does: regions here, in a forked child, and in a program that is executed. */
static int program(void)
{
    int status;
    region("inside", 3);
    if (fork() == 0) {
        region("in the child", 2);
        execl("/proc/self/exe", "x", "executed", (char *)NULL);
        _exit(126);
    }
    CHECK(wait(&status) > 0 && status == 5 << 8);
    return 7;
}

static void become(uid_t uid)
{
    if (geteuid() == 0 && uid != 0)
        CHECK(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0);
}

/* Whether that user can execute this program, with the library: not where a directory above is closed to it, as /root is. */
static int reachable(uid_t uid)
{
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        become(uid);
        _exit(access(own_path(), X_OK) || access(library, R_OK));
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status == 0;
}

/* Does this as that user, in a process of its own, which then stays as a parent of what comes if `stays`. */
static void as(uid_t uid, void (*work)(pid_t), pid_t pid)
{
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        become(uid);
        umask(0);
        work(pid);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* The name of a table in the shared directory, as a plain run and as one with TOPDOWN_OUTPUT=run.topdown would choose it. */
static const char *name(int k, pid_t pid)
{
    static char path[PATH_MAX + 100];
    snprintf(path, sizeof path, "%s/%s.%d.%d.topdown", leftovers ? leftovers : shared, k % 2 ? "topdown" : "run", pid, k / 2);
    return path;
}

static void nothing(pid_t pid) { (void)pid; }
static void fifos(pid_t pid)
{
    for (int k = 0; k < 2 * NAMES; k++)
        CHECK_EQ(mkfifo(name(k, pid), 0666), 0);
}
static void links(pid_t pid)
{
    char precious[PATH_MAX + 20];
    snprintf(precious, sizeof precious, "%s/precious", shared);
    for (int k = 0; k < 2 * NAMES; k++)
        CHECK_EQ(symlink(precious, name(k, pid)), 0);
}
static void directories(pid_t pid)
{
    for (int k = 0; k < 2 * NAMES; k++)
        CHECK_EQ(mkdir(name(k, pid), 0777), 0);
}

/* Tables of another program, in the shared directory or where `leftovers` says; made to be of this process, of its parent, and of the run that it is the root of. */
static char forged[1 << 20];
static size_t forged_size;
static void forgeries(pid_t pid)
{
    for (int k = 0; k < 20; k++) {
        const pid_t which = k < 4 ? pid : k < 8 ? getppid() : 1000000 + k;
        int32_t header[16];
        memcpy(header, forged, sizeof header); /* table/src/lib.rs */
        header[4] = which, header[5] = getppid(), header[8] = 0;
        header[15] = k % 3 ? pid : getppid();
        const uint64_t late = UINT64_C(1) << 62;
        memcpy(forged, header, sizeof header);
        memcpy(forged + 24, &late, sizeof late);
        const int fd = open(name(k, which), O_CREAT | O_EXCL | O_WRONLY, 0666);
        CHECK(fd >= 0 && write(fd, forged, forged_size) == (ssize_t)forged_size);
        close(fd);
    }
}
static void forge(void)
{
    char path[PATH_MAX + 20], line[4 * PATH_MAX];
    snprintf(line, sizeof line,
             "cd '%s' && TOPDOWN_SIMULATE=1 TOPDOWN_OUTPUT=forged.topdown LD_PRELOAD='%s' '%s' forged && mv forged.*.topdown forged",
             preload_scratch, library, own_path());
    CHECK_EQ(system(line), 0);
    snprintf(path, sizeof path, "%s/forged", preload_scratch);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    forged_size = fread(forged, 1, sizeof forged, file);
    CHECK(forged_size > 8192 && !strncmp(forged, "topdown\n", 8));
    fclose(file);
}

/* Runs the program as the victim, in the shared directory where the other has been before; its standard error. */
static const char *run(uid_t victim, void (*other)(pid_t), const char *variable, const char *value)
{
    int ready[2], status;
    char byte, path[PATH_MAX + 20], line[3 * PATH_MAX + 60];
    snprintf(line, sizeof line, "rm -rf '%s'; mkdir -m 1777 '%s'; rm -f '%s/err'", shared, shared, preload_scratch);
    CHECK(system(line) == 0 && pipe(ready) == 0);
    snprintf(path, sizeof path, "%s/precious", shared);
    const int precious = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    CHECK(precious >= 0 && fchown(precious, victim, victim) == 0);
    close(precious);
    snprintf(path, sizeof path, "%s/err", preload_scratch);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_EQ(dup2(open(path, O_CREAT | O_RDWR, 0666), 2), 2);
        become(victim);
        CHECK_EQ(read(ready[0], &byte, 1), 1);
        unsetenv("XDG_RUNTIME_DIR");
        setenv("TOPDOWN_SIMULATE", "1", 1);
        setenv("TMPDIR", shared, 1);
        setenv("LD_PRELOAD", library, 1);
        if (variable)
            setenv(variable, value, 1);
        alarm(30); /* who hangs is killed, and fails */
        execl(own_path(), own_path(), "program", (char *)NULL);
        _exit(126);
    }
    as(leftovers ? victim : OTHER, other, child);
    CHECK_EQ(write(ready[1], "x", 1), 1);
    close(ready[0]);
    close(ready[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    struct stat about;
    snprintf(path, sizeof path, "%s/precious", shared);
    if (status != 7 << 8 || stat(path, &about) || about.st_size)
        FAIL("status %#x; said\n%s", status, preload_text("err"));
    return preload_text("err");
}

static int times(const char *text, const char *what)
{
    int n = 0;
    while ((text = strstr(text, what)) != NULL)
        n++, text++;
    return n;
}

/* The report's own place. */
static void report_fifo(pid_t pid)
{
    char path[PATH_MAX + 20];
    (void)pid;
    snprintf(path, sizeof path, "%s/report.csv", shared);
    CHECK_EQ(mkfifo(path, 0666), 0);
}
static void report_link(pid_t pid)
{
    char path[PATH_MAX + 20], to[PATH_MAX + 20];
    (void)pid;
    snprintf(path, sizeof path, "%s/report.csv", shared);
    snprintf(to, sizeof to, "%s/precious", shared);
    CHECK_EQ(symlink(to, path), 0);
}

/* The whole report, and nothing else. */
static void is_whole(const char *how, uid_t victim, const char *text)
{
    if (!strstr(text, "inside") || !strstr(text, "in the child") || !strstr(text, "in what was executed") || strstr(text, "forged") ||
        times(text, "topdown:") > 1)
        FAIL("%s, victim %d: the report is\n%s", how, victim, text);
}

/* What is in the shared directory and is the victim's: with this ending. */
static int left(uid_t victim, const char *ending)
{
    int n = 0;
    struct stat about;
    char path[PATH_MAX + 300];
    DIR *directory = opendir(shared);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const size_t length = strlen(entry->d_name), end = strlen(ending);
        snprintf(path, sizeof path, "%s/%s", shared, entry->d_name);
        n += entry->d_name[0] != '.' && length >= end && !strcmp(entry->d_name + length - end, ending) && !lstat(path, &about) && about.st_uid == victim &&
             !S_ISLNK(about.st_mode);
    }
    closedir(directory);
    return n;
}

static void attacks(uid_t victim)
{
    static const struct {
        const char *name;
        void (*work)(pid_t);
    } WAYS[] = {{"nothing", nothing}, {"FIFOs", fifos}, {"links", links}, {"directories", directories}, {"forgeries", forgeries}};
    char path[PATH_MAX + 100], line[2 * PATH_MAX];
    struct stat about;
    for (size_t k = 0; k < sizeof WAYS / sizeof *WAYS; k++) {
        is_whole(WAYS[k].name, victim, run(victim, WAYS[k].work, NULL, NULL));
        CHECK(left(victim, "") == 1); /* but for what is precious */
        /* the table files themselves, in the shared directory */
        snprintf(path, sizeof path, "%s/run.topdown", shared);
        CHECK(!strstr(run(victim, WAYS[k].work, "TOPDOWN_OUTPUT", path), "topdown:"));
        CHECK_EQ(left(victim, ".topdown"), 3); /* parent, child, and what it executed */
    }
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/report.csv", shared);
        const char *text = run(victim, k ? report_link : report_fifo, "TOPDOWN_OUTPUT", path);
        if (!strstr(text, "another user") || times(text, "topdown:") != 1)
            FAIL("victim %d said %s", victim, text);
    }
    /* directories that the environment names */
    snprintf(path, sizeof path, "%s/named", preload_scratch);
    for (int k = 0; k < 2; k++) {
        const char *variable = k ? "XDG_RUNTIME_DIR" : "TOPDOWN_TABLES";
        CHECK(mkdir(path, 0777) == 0 && chown(path, OTHER, OTHER) == 0 && chmod(path, 0777) == 0);
        is_whole("another's directory", victim, run(victim, nothing, variable, path));
        CHECK(rmdir(path) == 0 && mkdir(path, 0755) == 0 && chown(path, victim, victim) == 0 && chmod(path, 0755) == 0);
        is_whole("a directory that others can look into", victim, run(victim, nothing, variable, path));
        CHECK_EQ(rmdir(path), 0); /* nothing is in it */
        snprintf(line, sizeof line, "%s.link", path);
        CHECK(mkdir(path, 0700) == 0 && chown(path, victim, victim) == 0 && symlink(path, line) == 0);
        is_whole("a link", victim, run(victim, nothing, variable, line));
        CHECK_EQ(unlink(line), 0);
        is_whole("its own", victim, run(victim, nothing, variable, path));
        CHECK(stat(path, &about) == 0 || (mkdir(path, 0700) == 0 && chown(path, victim, victim) == 0));
        leftovers = path;
        is_whole("leftovers", victim, run(victim, forgeries, variable, path));
        leftovers = NULL;
        snprintf(line, sizeof line, "rm -r '%s'", path);
        CHECK_EQ(system(line), 0);
    }
}

int main(int argc, char **argv)
{
    char directory[PATH_MAX];
    if (argc > 1 && !strcmp(argv[1], "program"))
        return program();
    if (argc > 1) {
        region(strcmp(argv[1], "forged") ? "in what was executed" : "forged", 2);
        return strcmp(argv[1], "forged") ? 5 : 0;
    }
    if (geteuid() != 0)
        SKIP("two users: needs root");
    snprintf(directory, sizeof directory, "%s", own_path());
    snprintf(preload_release, sizeof preload_release, "%s/../release", dirname(directory));
    snprintf(library, sizeof library, "%s/libtopdown-preload.so", preload_release);
    if (access(library, R_OK))
        SKIP("%s is not there", library);
    if (!reachable(VICTIM))
        SKIP("other users cannot reach %s: a directory above it is closed to them", library);
    unsetenv("LD_PRELOAD");
    strcpy(preload_scratch, "/tmp/preload.XXXXXX");
    CHECK(mkdtemp(preload_scratch) != NULL && chmod(preload_scratch, 0711) == 0);
    atexit(preload_clean);
    snprintf(shared, sizeof shared, "%.4000s/shared", preload_scratch);
    forge();
    attacks(0);
    attacks(VICTIM);
    return 0;
}
