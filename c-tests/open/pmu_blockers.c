/* Blockers of td_open: each system call that it makes is refused in turn, with each errno that a kernel or a seccomp
 * filter may answer. Either it opens all the same and is right, or it gives a documented code and says why; in neither case
 * is anything left behind. A filter hands the calls to this program, which lets them pass or refuses them. */
#include "competing.h"
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>

#define MARK 0x5ca1ab1eull /* in the upper half of an int that the kernel does not look at: this call may pass */
static const struct {
    long number;
    int argument; /* the int that takes the mark */
    const char *name;
} CALLS[] = {
    {SYS_perf_event_open, 2, "perf_event_open"}, {SYS_mmap, 4, "mmap"}, {SYS_ioctl, 0, "ioctl"},
    {SYS_read, 0, "read"},                       {SYS_openat, 0, "a file"},
};
enum { OPEN, MMAP, IOCTL, READ, FILES, KINDS };

static volatile int armed, calls, victim, kind_of_victim, answer;
static volatile char is_event[1024]; /* by descriptor */

static void on_call(int signal, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    long argument[6] = {regs[REG_RDI], regs[REG_RSI], regs[REG_RDX], regs[REG_R10], regs[REG_R8], regs[REG_R9]};
    int kind = 0;
    (void)signal;
    while (CALLS[kind].number != info->si_syscall)
        kind++;
    if (armed && calls++ == victim) {
        kind_of_victim = kind == READ && !is_event[argument[0]] ? FILES : kind;
        regs[REG_RAX] = -answer;
        return;
    }
    long *marked = &argument[CALLS[kind].argument];
    *marked = (long)((*(uint64_t *)marked & 0xffffffffu) | MARK << 32);
    const int kept = errno;
    const long result =
        syscall(info->si_syscall, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
    if (result >= 0 && (kind == OPEN || kind == FILES))
        is_event[result] = kind == OPEN;
    regs[REG_RAX] = result == -1 ? -errno : result;
    errno = kept;
}

static void hand_calls_over(void)
{
    struct sigaction action;
    struct sock_filter lines[8 * KINDS + 4];
    unsigned short count = 0;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_call;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
#define LINE(...) lines[count++] = (struct sock_filter)__VA_ARGS__
    for (int kind = 0; kind < KINDS; kind++) {
        const unsigned mark = (unsigned)(offsetof(struct seccomp_data, args) + 8 * (size_t)CALLS[kind].argument + 4);
        LINE(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
        LINE(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)CALLS[kind].number, 0, kind == MMAP ? 6 : 4));
        if (kind == MMAP) { /* memory is private; a control page is shared */
            LINE(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])));
            LINE(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 2));
        }
        LINE(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, mark));
        LINE(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1));
        LINE(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        LINE(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    }
    LINE(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog program = {count, lines};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static int descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory != NULL);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* what a refused call is to be told as; no code: any that is documented */
static const struct blocker {
    int kind, answer, code;
    const char *word;
} BLOCKERS[] = {
    {OPEN, EPERM, EPERM, "seccomp"},
    {OPEN, EACCES, EACCES, "seccomp"},
    {OPEN, ENOSYS, ENOSYS, "seccomp"},
    {OPEN, EMFILE, EMFILE, "ulimit -n"},
    {OPEN, ENFILE, ENFILE, "fs.file-max"},
    {OPEN, ENOMEM, ENOMEM, "perf_event_open of"},
    {OPEN, EBUSY, ENODEV, "reserved"},
    {OPEN, ENODEV, ENODEV, "does not open it"},
    {OPEN, ENOENT, ENODEV, "does not open it"},
    {OPEN, EINVAL, ENODEV, "does not open it"},
    {OPEN, EOPNOTSUPP, ENODEV, "does not open it"},
    {MMAP, EPERM, ENOMEM, "perf_event_mlock_kb"},
    {MMAP, ENOMEM, ENOMEM, "mmap"},
    {MMAP, EACCES, EACCES, "seccomp"},
    {MMAP, ENOSYS, ENOSYS, "seccomp"},
    {IOCTL, EPERM, EPERM, "seccomp"},
    {IOCTL, EACCES, EACCES, "seccomp"},
    {IOCTL, ENOSYS, ENOSYS, "seccomp"},
    {READ, EPERM, EPERM, "seccomp"},
    {READ, EACCES, EACCES, "seccomp"},
    {FILES, ENOENT, 0, ""},
    {FILES, EACCES, 0, ""},
};
static const int DOCUMENTED[] = {ENODEV, EACCES, EPERM, ENOSYS, EMFILE, ENFILE, ENOMEM};

static void opened(td_t *td)
{
    const double width = info_of(td).slots_per_cycle;
    struct td_sample before, after;
    struct td_l1 l1;
    td_must(td_read(td, &before));
    work(100000);
    td_must(td_read(td, &after));
    td_must(td_decode_l1(&before, &after, &l1));
    l1_is(&l1, MIXES[0], l1.error);
    CHECK_NEAR((double)l1.slots, 100000 * width, 20000 * width);
    td_close(td);
}

static int is_documented(int code)
{
    for (size_t i = 0; i < sizeof DOCUMENTED / sizeof DOCUMENTED[0]; i++)
        if (code == -DOCUMENTED[i])
            return 1;
    return 0;
}

/* Refuses the call that is `victim`, if it is one of that kind. Returns 0 if td_open makes fewer. */
static int hits(const struct blocker *blocker, const struct td_options *options, int *refused)
{
    td_t *td = NULL;
    char text[1024];
    const int fds = descriptors(), pages = control_pages();
    calls = 0, kind_of_victim = KINDS, answer = blocker->answer;
    armed = 1;
    const int code = td_open(&td, options);
    armed = 0;
    text[0] = 0;
    if (code != 0)
        td_last_error(text, sizeof text);
    if (code == 0)
        opened(td);
    const int automatic = !(options->flags & TD_FLAG_REGISTERS); /* the other source serves */
    const int right = code == 0 ? automatic || blocker->kind == FILES || blocker->kind == MMAP || kind_of_victim != blocker->kind
                                : td == NULL && strlen(text) > 60 &&
                                      (blocker->code == 0 || kind_of_victim != blocker->kind
                                           ? is_documented(code)
                                           : code == -blocker->code && strstr(text, blocker->word) != NULL);
    if (!right)
        FAIL("%s, call %d, answers %s: td_open says %d: %s", CALLS[kind_of_victim].name, victim, strerror(answer), code, text);
    CHECK_EQ(descriptors(), fds);
    CHECK_EQ(control_pages(), pages);
    *refused += code != 0;
    return calls > victim;
}

/* the kinds of the calls that td_open makes, in turn */
static int survey(const struct td_options *options, int *kinds, int most)
{
    td_t *td = NULL;
    int count = 0;
    for (;; count++) {
        CHECK(count < most);
        victim = count, calls = 0, kind_of_victim = KINDS, answer = EPERM;
        armed = 1;
        const int code = td_open(&td, options);
        armed = 0;
        td_close(code == 0 ? td : NULL);
        if (calls <= victim)
            return count;
        kinds[count] = kind_of_victim;
    }
}

static void tries(uint32_t flags)
{
    const struct td_options options = options_of(flags, 0);
    int kinds[200], opens = 0, refused = 0;
    const int count = survey(&options, kinds, 200);
    for (size_t i = 0; i < sizeof BLOCKERS / sizeof BLOCKERS[0]; i++)
        for (victim = 0; victim < count; victim++)
            if (kinds[victim] == BLOCKERS[i].kind)
                opens += hits(&BLOCKERS[i], &options, &refused);
    printf("flags %u: %d calls, %d times one was refused, %d of them td_open failed\n", flags, count, opens, refused);
    CHECK(count > 20 && opens > 100);
    if (flags & TD_FLAG_REGISTERS) /* else another source serves, and files are read once (tries_anew) */
        CHECK(refused > 80);
}

/* The exit status of a process that has opened nothing before, and tries this. */
static int anew(const struct blocker *blocker, const struct td_options *options)
{
    enum { NONE_LEFT = 100, DONE = 10 };
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        td_t *td = NULL;
        int refused = 0;
        if (blocker) {
            hits(blocker, options, &refused);
            _exit(DONE + refused);
        }
        calls = 0, kind_of_victim = KINDS, answer = EPERM;
        armed = 1;
        td_open(&td, options);
        armed = 0;
        _exit(calls <= victim ? NONE_LEFT : DONE + (int)kind_of_victim);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) >= DONE);
    return WEXITSTATUS(status) == NONE_LEFT ? -1 : WEXITSTATUS(status) - DONE;
}

/* Each time as the first of a process: td_open reads its files. */
static void tries_anew(void)
{
    const struct td_options options = options_of(0, 0);
    int kinds[200], count = 0, opens = 0, refused = 0;
    for (victim = 0; (kinds[count] = anew(NULL, &options)) >= 0; victim = ++count)
        CHECK(count < 199);
    for (size_t i = 0; i < sizeof BLOCKERS / sizeof BLOCKERS[0]; i++)
        for (victim = 0; victim < count; victim++)
            if (kinds[victim] == (int)BLOCKERS[i].kind)
                opens++, refused += anew(&BLOCKERS[i], &options);
    printf("anew: %d calls, %d times one was refused, %d of them td_open failed\n", count, opens, refused);
    CHECK(count > 20 && opens > 100 && refused > 10); /* some are survived: files of SLOTS, say */
}

int main(void)
{
    needs_known_mix();
    stay_on_a_cpu();
    mix_is(MIXES[0]);
    hand_calls_over();
    tries_anew();
    td_close(measured(NULL));
    tries(TD_FLAG_REGISTERS);
    if (!in_gate())
        tries(TD_FLAG_REGISTERS | TD_FLAG_NO_RDPMC);
    tries(0);
    opened(measured(NULL));
    return 0;
}
