/* topdown_inline.h as programs were compiled with it at commit d839169, without its comments. It never changes. */
#ifndef TOPDOWN_INLINE_H
#define TOPDOWN_INLINE_H
#include "topdown.h"
static inline int td_read_mark(td_t *td, struct td_mark *mark)
{
#if defined(__x86_64__) && defined(__LP64__) && defined(__GNUC__)
    __asm__ goto("mov %%fs:0, %%rax\n\t"
                 "cmp %%rax, %c[reader](%[td])\n\t"
                 "jne %l[slowly]\n\t"
                 "mov %c[rseq](%[td]), %%rcx\n\t"
                 "lea 22f(%%rip), %%rax\n\t"
                 "mov %%rax, (%%rcx)\n"
                 "20:\n\t"
                 "mov %c[stamp](%[td]), %%r8\n\t"
                 "mov $0x40000003, %%ecx\n\t"
                 "rdpmc\n\t"
                 "shl $32, %%rdx\n\t"
                 "or %%rdx, %%rax\n\t"
                 "cmp %c[limit](%[td]), %%rax\n\t"
                 "ja %l[slowly]\n\t"
                 "mov %%rax, %%r9\n\t"
                 "mov $0x20000000, %%ecx\n\t"
                 "rdpmc\n\t"
                 "cmp %%r8d, %c[lock](%[td])\n\t"
                 "jne %l[slowly]\n"
                 "21:\n\t"
                 "mov %%r9, %c[slots](%[mark])\n\t"
                 "mov %%eax, %c[metrics](%[mark])\n\t"
                 "mov %%edx, %c[metrics]+4(%[mark])\n\t"
                 "mov %%r8, %c[sequence](%[mark])\n\t"
                 ".pushsection .data.rel.ro.topdown_rseq, \"aw?\", @progbits\n\t"
                 ".balign 32\n"
                 "22: .long 0, 0\n\t"
                 ".quad 20b, 21b - 20b, 23f\n\t"
                 ".popsection\n\t"
                 ".pushsection .text.topdown_rseq, \"ax?\", @progbits\n\t"
                 ".byte 0x0f, 0xb9, 0x3d\n\t"
                 ".long 0x53053053\n"
                 "23: .byte 0x0f, 0x1f, 0x80\n\t"
                 ".long 0x4e574454\n\t"
                 "jmp %l[slowly]\n\t"
                 ".popsection"
                 :
                 : [td] "r"(td), [mark] "r"(mark), [reader] "i"(offsetof(struct td_hot, inline_reader)),
                   [rseq] "i"(offsetof(struct td_hot, rseq)), [limit] "i"(offsetof(struct td_hot, limit)),
                   [stamp] "i"(offsetof(struct td_hot, start.base.sequence)), [lock] "i"(TD_CONTROL_PAGE + 8),
                   [slots] "i"(offsetof(struct td_mark, slots)), [metrics] "i"(offsetof(struct td_mark, metrics)),
                   [sequence] "i"(offsetof(struct td_mark, sequence))
                 : "rax", "rcx", "rdx", "r8", "r9", "memory", "cc"
                 : slowly);
    return 0;
slowly:
#endif
    return td_read_mark_slowly(td, mark);
}
#endif
