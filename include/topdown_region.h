/* topdown_region.h: regions with a name, in any program. This header alone is enough: without libtopdown the program
 * links and runs as ever, and a call costs the test of two addresses. With it,
 *
 *     LD_PRELOAD=libtopdown-preload.so TOPDOWN_OUTPUT=report.html ./program
 *
 * (`topdown run` does that) reports for each region how often it ran and where its pipeline slots went.
 *
 *     td_region_begin("solve");
 *     ... the region ...
 *     td_region_end("solve");
 *
 * The library is found through weak symbols and a note, which are for libtopdown-preload.so alone: neither libtopdown.so nor
 * libtopdown.a, nor a program linked statically. C99 or later and C++, x86-64 and arm64 Linux, GCC or Clang; elsewhere, or with
 * TOPDOWN_DISABLE defined before this header, nothing is left of it in the program. */
#ifndef TOPDOWN_REGION_H
#define TOPDOWN_REGION_H

#if !defined(TOPDOWN_DISABLE) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__LP64__) && \
    defined(__ELF__) && defined(__GNUC__)
#define TD_REGION_ENABLED 1
#else
#define TD_REGION_ENABLED 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if TD_REGION_ENABLED
/* The address of a function of the preload library, NULL without it. It comes from the global offset table, as
 * elsewhere the linker would decide for a program that is not position independent that there is no such function. */
#if defined(__x86_64__)
#define TD_REGION_FIND(symbol, address)                                                                               \
    __asm__(".weak " symbol "\n\t"                                                                                    \
            "{movq " symbol "@GOTPCREL(%%rip), %0|mov %0, QWORD PTR " symbol "@GOTPCREL[rip]}"                        \
            : "=r"(address))
#else
#define TD_REGION_FIND(symbol, address)                                                                               \
    __asm__(".weak " symbol "\n\tadrp %0, :got:" symbol "\n\tldr %0, [%0, :got_lo12:" symbol "]" : "=r"(address))
#endif

/* The same, put here by the library when the program begins: some linkers (mold) decide for every program that there is no such
 * function. It finds them by the note. */
struct td_region_functions {
    int (*volatile begin)(const char *name);
    int (*volatile end)(const char *name);
};
extern struct td_region_functions td_region_functions __attribute__((weak, visibility("hidden")));
__attribute__((used)) struct td_region_functions td_region_functions;
__asm__(".ifndef td_region_note\n\t"
        ".pushsection .note.topdown, \"a\", %note\n\t"
        ".balign 4\n"
        "td_region_note:\n\t"
        ".long 8, 4, 1\n\t"
        ".asciz \"topdown\"\n\t"
        ".long td_region_functions - .\n\t"
        ".popsection\n\t"
        ".endif");

/* In the object file they have names of their own, since the ones in C are the library's. */
static inline int td_region_begin(const char *name) __asm__("td_region_begin_if_loaded");
static inline int td_region_end(const char *name) __asm__("td_region_end_if_loaded");
#endif

/* Begins a region in the calling thread. Its name's text identifies it, wherever the name is stored; 1 to 511 bytes.
 * Regions nest, and may begin within themselves (recursion). Each thread has its own, also of the same name. Any thread.
 *
 * Returns 0, also without the library, or a negative code, which a program may well ignore: what td_read returns;
 * -EINVAL: `name` is NULL or empty; -ENAMETOOLONG: it is longer than 511 bytes; -ENOSPC: too many regions. */
static inline int td_region_begin(const char *name)
{
#if TD_REGION_ENABLED
    int (*begin)(const char *);
    TD_REGION_FIND("td_region_begin", begin);
    if (!begin)
        begin = td_region_functions.begin;
    return begin ? begin(name) : 0;
#else
    (void)name;
    return 0;
#endif
}

/* Ends the innermost region of this name that began in the calling thread. Regions within it that did not end are split:
 * they end here, and begin again after it. Each piece is an execution; the last one does not count if its end is missing.
 * Any thread.
 *
 * Returns as td_region_begin; -EINVAL: `name` is NULL, or no such region had begun in this thread. That is counted, too,
 * and does no harm. */
static inline int td_region_end(const char *name)
{
#if TD_REGION_ENABLED
    int (*end)(const char *);
    TD_REGION_FIND("td_region_end", end);
    if (!end)
        end = td_region_functions.end;
    return end ? end(name) : 0;
#else
    (void)name;
    return 0;
#endif
}

#ifdef __cplusplus
}

namespace topdown {

/* A region as long as this object: `topdown::region guard("solve");`. It ends when the block is left, by an exception as
 * well. The name is not copied: it
 * has to last as long as the object, which `guard(text().c_str())` does not. */
#if TD_REGION_ENABLED
class region {
    const char *name_;
    region(const region &);            /* not to be copied */
    region &operator=(const region &);

public:
    explicit region(const char *name) : name_(name) { (void)td_region_begin(name); }
    ~region() { (void)td_region_end(name_); }
};
#else
/* Another class, as another source of the program may have the one above. */
class no_region {
    no_region(const no_region &);
    no_region &operator=(const no_region &);

public:
    explicit no_region(const char *) {}
    ~no_region() {}
};
typedef no_region region;
#endif

} /* namespace topdown */
#endif

#if TD_REGION_ENABLED
/* As the functions, but with TOPDOWN_DISABLE the name is not even evaluated.
 *
 * `TD_REGION_SCOPE(name);` is a declaration: the region ends with the block around it. A longjmp past the end of the block
 * leaves the region without an end. */
#define TD_REGION_BEGIN(name) ((void)td_region_begin(name))
#define TD_REGION_END(name) ((void)td_region_end(name))
#define TD_REGION_JOIN_(a, b) a##b
#define TD_REGION_JOIN(a, b) TD_REGION_JOIN_(a, b)
#ifdef __cplusplus
#define TD_REGION_SCOPE(name) ::topdown::region TD_REGION_JOIN(td_region_scope_, __LINE__)(name)
#else
static inline const char *td_region_enter(const char *name)
{
    (void)td_region_begin(name);
    return name;
}
static inline void td_region_leave(const char **name) { (void)td_region_end(*name); }
#define TD_REGION_SCOPE(name)                                                                                         \
    const char *TD_REGION_JOIN(td_region_scope_, __LINE__) __attribute__((cleanup(td_region_leave), unused)) =        \
        td_region_enter(name)
#endif
#else
#define TD_REGION_BEGIN(name) ((void)0)
#define TD_REGION_END(name) ((void)0)
#define TD_REGION_SCOPE(name) ((void)0)
#endif

#endif
