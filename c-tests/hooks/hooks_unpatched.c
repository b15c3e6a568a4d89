/* Functions that are not patched (TOPDOWN_FUNCTIONS): the program runs as it would, and why is said, even if none is patched. Where the
 * system lets nobody write code, or execute what was written to (SELinux's execmod), the program's code stays executable. */
#include "hooks.h"
#include <sys/mman.h>
#include <sys/syscall.h>

extern char __executable_start, etext;

/* The library's, too. MODE: which protections of the program's code the system refuses. */
int mprotect(void *at, size_t size, int access)
{
    const char *mode = getenv("MODE");
    const int is_code = (char *)at >= &__executable_start && (char *)at < &etext && (access & PROT_EXEC);
    const int is_writable = access & PROT_WRITE;
    if (mode && is_code && strstr(mode, is_writable ? "writable" : "written")) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_mprotect, at, size, access);
}

__attribute__((noinline, noclone)) static int my_work(int x)
{
    asm volatile("" : "+r"(x));
    return x * 3 + x / 7;
}

/* shorter than a jump */
__attribute__((noinline, noclone)) int my_short(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}

/* called as functions of this name are not */
__attribute__((noinline, noclone)) int _dl_work(int x)
{
    asm volatile("" : "+r"(x));
    return x * 3 + 1000;
}

static void calls(void)
{
    for (int k = 0; k < 5; k++)
        CHECK_EQ(my_work(k), 3 * k);
    CHECK_EQ(my_short(3), 3);
    CHECK_EQ(_dl_work(3), 1009);
}

int main(void)
{
#ifndef __x86_64__
    SKIP("functions are patched on x86-64");
#endif
    static const struct {
        const char *mode, *patterns, *said;
        int executed;
    } cases[] = {
        {"", "my_work,my_short", "functions shorter than a jump: my_short", 5},
        {"", "my_short", "functions shorter than a jump: my_short", 0},
        {"", "my_work,_dl_*", "not called as the ABI says: _dl_work", 5},
        {"", "libc.so.6:getpid", "this library itself depends on it", 0},
        {"written", "my_work", NULL, 5},
        {"writable", "my_work", "1 of the functions not measured: the system does not let code be written", 0},
        {"writable, written", "my_work", "1 of the functions not measured: the system does not let code be written", 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        if (!getenv("HOOKS_CHILD"))
            setenv("MODE", cases[k].mode, 1);
        if (measured("TOPDOWN_FUNCTIONS", cases[k].patterns)) {
            calls();
            return 0;
        }
        REGION("my_work", cases[k].executed, 0);
        if (cases[k].said && !said(cases[k].said))
            FAIL("%s, %s: not said: %s", cases[k].mode, cases[k].patterns, cases[k].said);
    }
    return 0;
}
