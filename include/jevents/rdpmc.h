/* rdpmc.h: one counter, read from user space. The interface is libjevents'.
 * The thread that opened a counter reads and closes it. */
#ifndef RDPMC_H
#define RDPMC_H 1

#ifndef PERF_ATTR_SIZE_VER0 /* of a copy that the program has */
#include <linux/perf_event.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct rdpmc_ctx {
    int fd;
    struct perf_event_mmap_page *buf;
};

/* Opens an event by its number. */
int rdpmc_open(unsigned counter, struct rdpmc_ctx *ctx);
/* Opens an event, in the group of `leader_ctx` if that is not NULL. */
int rdpmc_open_attr(struct perf_event_attr *attr, struct rdpmc_ctx *ctx, struct rdpmc_ctx *leader_ctx);
/* Closes a counter; what is not open stays closed. */
void rdpmc_close(struct rdpmc_ctx *ctx);
/* The counter's total. */
unsigned long long rdpmc_read(struct rdpmc_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
