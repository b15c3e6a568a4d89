/* sandbox.h: seccomp filters; a program is executed under one by instructions, of which no library learns. */
#ifndef SANDBOX_H
#define SANDBOX_H
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
static inline long sandbox_call(long call, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(call), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
#else
static inline long sandbox_call(long call, long a, long b, long c)
{
    register long x8 __asm__("x8") = call, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#endif

/* What a program of the GNU C library needs to be loaded, and to write a line. */
static const int SANDBOX_PLAIN[] = {
    SYS_execve, SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_openat, SYS_read, SYS_pread64, SYS_close, SYS_newfstatat, SYS_fstat, SYS_write,
    SYS_exit_group, SYS_set_tid_address, SYS_set_robust_list, SYS_rseq, SYS_prlimit64, SYS_getrandom, SYS_faccessat, SYS_futex,
    SYS_rt_sigreturn,
#ifdef __x86_64__
    SYS_access, SYS_arch_prctl,
#endif
};
enum { SANDBOX_PLAIN_CALLS = sizeof SANDBOX_PLAIN / sizeof *SANDBOX_PLAIN };

/* What it does not need, and libtopdown-preload.so calls: to open counters, to write its table, to be ready for faults. */
static const int SANDBOX_OTHERS[] = {SYS_perf_event_open, SYS_socket, SYS_fallocate, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_madvise, SYS_getpid};
enum { SANDBOX_OTHER_CALLS = sizeof SANDBOX_OTHERS / sizeof *SANDBOX_OTHERS };

/* Makes a filter that kills for these calls, or for all but these, in room for 64 steps. */
static inline struct sock_fprog sandbox_filter(struct sock_filter steps[64], const int *calls, size_t count, int are_allowed)
{
    size_t at = 0;
    steps[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t k = 0; k < count; k++) {
        steps[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[k], 0, 1);
        steps[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, are_allowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS);
    }
    steps[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, are_allowed ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW);
    return (struct sock_fprog){(unsigned short)at, steps};
}

/* From now on a call is answered with this errno, as container runtimes do. Returns 0 if that can be. */
static inline int sandbox_answer(int call, int number)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)number),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof steps / sizeof steps[0], steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) : -1;
}

/* Returns if that cannot be. */
static inline void sandbox_execute(const struct sock_fprog *filter, char *const *arguments, char *const *environment)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && sandbox_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)filter) == 0)
        sandbox_call(SYS_execve, (long)arguments[0], (long)arguments, (long)environment);
}
#endif
