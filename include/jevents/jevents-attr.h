/* jevents-attr.h: the size of this program's struct perf_event_attr, for the other headers. The macros of the kernel's header, or
 * of a copy of it that the program has, say it, if that was included before; else it is that of the system's kernel headers, whose
 * version says it. (No include guard: each header asks again.) */
struct perf_event_attr;

#undef JEVENTS_ATTR_SIZE
#undef JEVENTS_SYMBOL
#if defined PERF_ATTR_SIZE_VER11
#define JEVENTS_ATTR_SIZE PERF_ATTR_SIZE_VER11
#elif defined PERF_ATTR_SIZE_VER10
#define JEVENTS_ATTR_SIZE PERF_ATTR_SIZE_VER10
#elif defined PERF_ATTR_SIZE_VER9
#define JEVENTS_ATTR_SIZE PERF_ATTR_SIZE_VER9
#elif defined PERF_ATTR_SIZE_VER8
#define JEVENTS_ATTR_SIZE PERF_ATTR_SIZE_VER8
#elif defined PERF_ATTR_SIZE_VER7
#define JEVENTS_ATTR_SIZE PERF_ATTR_SIZE_VER7
#elif defined PERF_ATTR_SIZE_VER6
#define JEVENTS_ATTR_SIZE PERF_ATTR_SIZE_VER6
#elif defined PERF_ATTR_SIZE_VER5
#define JEVENTS_ATTR_SIZE PERF_ATTR_SIZE_VER5
#elif defined PERF_ATTR_SIZE_VER0
#error "this struct perf_event_attr is smaller than that of Linux 4.1, the smallest that libjevents writes"
#else
#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define JEVENTS_ATTR_SIZE 144
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define JEVENTS_ATTR_SIZE 136
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
#define JEVENTS_ATTR_SIZE 128
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 5, 0)
#define JEVENTS_ATTR_SIZE 120
#else
#define JEVENTS_ATTR_SIZE 112
#endif
#endif

#define JEVENTS_TEXT_OF(number) #number
#define JEVENTS_TEXT(number) JEVENTS_TEXT_OF(number)
#if JEVENTS_ATTR_SIZE == 128
#define JEVENTS_SYMBOL(name)
#else
#define JEVENTS_SYMBOL(name) __asm__("jevents_attr" JEVENTS_TEXT(JEVENTS_ATTR_SIZE) "_" #name)
#endif
