/* `topdown top` on a terminal: the shares that it shows of a process are the truth within the bound beside them, also while
 * the core drops slots (INT_MISC.UOP_DROPPING); keys sort and end it; q,
 * SIGTERM and the process's own end give the terminal back as it was. NO_COLOR: no colours.
 * needs: counters or general-counters */
#include "lib/stat.h"
#include "published.h"
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <termios.h>

static const struct vm_mix WORK = {20, 8, 24, 8, 8, 8, 8};
static char seen[1 << 20]; /* all that was written to the terminal */
static size_t length;
static int terminal;

/* A process that works until it is killed. */
static pid_t works(void)
{
    const pid_t child = fork();
    if (child == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        mix_and_rates(WORK);
        for (;;)
            __asm__ volatile("" ::: "memory");
    }
    CHECK(child > 0);
    return child;
}

static pid_t top_of(pid_t worker, const char *no_color)
{
    const struct winsize size = {20, 100, 0, 0};
    char id[16];
    snprintf(id, sizeof id, "%d", worker);
    length = 0;
    const pid_t child = forkpty(&terminal, NULL, NULL, &size);
    CHECK(child >= 0);
    if (child == 0) {
        setenv("NO_COLOR", no_color, 1);
        CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
        execl(beside("../release/topdown"), "topdown", "top", "-p", id, "-I", "100", (char *)NULL);
        _exit(126);
    }
    return child;
}

/* Reads more; 0: it has ended. */
static int more(void)
{
    struct pollfd one = {terminal, POLLIN, 0};
    if (poll(&one, 1, 60000) <= 0)
        FAIL("nothing more in a minute after\n%s", seen);
    const ssize_t got = read(terminal, seen + length, sizeof seen - 1 - length);
    if (got <= 0)
        return 0; /* EIO: nobody has the other end */
    length += (size_t)got;
    seen[length] = 0;
    return 1;
}

static void sees(const char *text)
{
    seen[length] = 0;
    while (memmem(seen, length, text, strlen(text)) == NULL) {
        if (!more())
            FAIL("'%s' is not in\n%s", text, seen);
    }
}

/* The row of all of it, as soon as there is one. */
static void shares_are_true(void)
{
    double rate, share[4], within;
    char unit, *row;
    do {
        CHECK(more());
        row = strstr(seen, "all of it ");
    } while (row == NULL || sscanf(row + 9, "%lf %c %lf %lf %lf %lf %lf", &rate, &unit, share, share + 1, share + 2, share + 3, &within) != 7);
    fprintf(stderr, "%.2f %c slots/s: %.1f %.1f %.1f %.1f, within %.1f\n", rate, unit, share[0], share[1], share[2], share[3], within);
    for (int k = 0; k < 4; k++)
        CHECK_NEAR(share[k], 100 * truth_of_node(WORK, TD_NODE_RETIRING + (uint32_t)k, 0), within + 0.06); /* shown with one digit */
    CHECK(within <= 1);
}

/* It ends with this status, and the terminal is as it was. */
static void gives_back(pid_t child)
{
    static const char LEAVES[] = "\x1b[?1049l", SHOWS[] = "\x1b[?25h";
    struct termios now;
    int status;
    while (more()) {}
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(memmem(seen, length, LEAVES, strlen(LEAVES)) != NULL && memmem(seen, length, SHOWS, strlen(SHOWS)) != NULL);
    CHECK_EQ(tcgetattr(terminal, &now), 0);
    CHECK((now.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG) && (now.c_oflag & OPOST));
    CHECK_EQ(close(terminal), 0);
}

/* The emulated machine has no file system of terminals: then this process gets one. */
static void terminals(void)
{
    const int one = posix_openpt(O_RDWR | O_NOCTTY);
    char name[64];
    if (one < 0 || ptsname_r(one, name, sizeof name) || access(name, F_OK)) {
        if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
            mount("terminals", "/dev/pts", "devpts", 0, "mode=666,ptmxmode=666"))
            SKIP("no pseudo-terminals: %s", strerror(errno));
    }
    close(one);
}

int main(void)
{
    stat_begins();
    terminals();
    td_t *const td = measured(NULL);
    const struct td_info info = info_of(td);
    td_close(td);
    published_by(&info);
    const pid_t worker = works();
    pid_t top = top_of(worker, "1");
    shares_are_true();
    CHECK_EQ(write(terminal, "s", 1), 1);
    sees("sorted by wasted slots");
    CHECK(memmem(seen, length, "\x1b[48", 4) == NULL);
    CHECK_EQ(write(terminal, "q", 1), 1);
    gives_back(top);

    top = top_of(worker, "");
    sees("\x1b[48;5;");
    sees("all of it");
    CHECK_EQ(kill(top, SIGTERM), 0);
    gives_back(top);

    top = top_of(worker, "1");
    sees("all of it");
    CHECK_EQ(kill(worker, SIGKILL), 0);
    CHECK_EQ(waitpid(worker, NULL, 0), worker);
    gives_back(top);
    return 0;
}
