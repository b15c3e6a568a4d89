/* td_read by RDPMC makes no system call, of registers if no windows are wanted: it works where any call but exit kills. By
 * read(2), and when it opens a window, it is killed there. */
#include "pmu.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void forbid_system_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* exit status: 0 all is well, 2 totals that do not grow, 3 an error */
static void reads(uint32_t flags, uint32_t max_error_ppm)
{
    struct td_options options = options_of(flags, 0);
    options.max_error_ppm = max_error_ppm;
    struct td_sample last, now;
    td_t *td = measured(&options);
    td_must(td_read(td, &last));
    forbid_system_calls();
    for (int i = 0; i < 10000; i++) {
        if (td_read(td, &now) != 0)
            _exit(3);
        if (now.slots <= last.slots)
            _exit(2);
        last = now;
    }
    _exit(0);
}

static int status_of(uint32_t flags, uint32_t max_error_ppm)
{
    int status = -1;
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        reads(flags, max_error_ppm);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

int main(void)
{
    td_t *td = measured(NULL);
    const struct td_info info = info_of(td);
    td_close(td);
    if (info.path != TD_PATH_RDPMC)
        SKIP("no RDPMC: %s", info.note);
    CHECK_EQ(status_of(0, info.counters > 0 ? 0 : 1000000), 0);
    CHECK_EQ(status_of(TD_FLAG_REGISTERS, 1000000), 0);
    int status = status_of(TD_FLAG_NO_RDPMC, 1000000);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    status = status_of(TD_FLAG_REGISTERS, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    return 0;
}
