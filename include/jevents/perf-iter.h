/* perf-iter.h: records of a perf ring buffer. The interface is libjevents'. */
#ifndef PERF_ITER_H
#define PERF_ITER_H 1

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct perf_event_attr;
struct perf_event_header;
struct perf_event_mmap_page;

/* What was in the buffer when perf_iter_init looked. */
struct perf_iter {
    uint64_t ring_buffer_mask;
    uint64_t head, cur, raw_head, bufsize;
    int64_t avail; /* bytes left */
    char *data;
    struct perf_event_mmap_page *mpage;
};

struct perf_fd {
    int pfd;
    struct perf_event_mmap_page *mpage;
    int buf_size_shift;
};

struct perf_aux_map {
    void *aux_map;
};

/* Opens an event of the calling thread, and maps its ring buffer of 2^buf_size_shift pages. */
int perf_fd_open(struct perf_fd *p, struct perf_event_attr *attr, int buf_size_shift);
/* The same of any thread or CPU. */
int perf_fd_open_other(struct perf_fd *p, struct perf_event_attr *attr, int buf_size_shift, int pid, int cpu);
/* Unmaps and closes; what is not open stays closed. */
void perf_fd_close(struct perf_fd *p);
/* The event counts from now on. */
int perf_enable(struct perf_fd *p);
/* It counts no longer. */
int perf_disable(struct perf_fd *p);
/* Bytes of control page and data; 0 if they are more than an unsigned number can say. */
unsigned perf_mmap_size(int buf_size_shift);

/* Begins with what is in the buffer now. */
void perf_iter_init(struct perf_iter *iter, struct perf_fd *pfd);
/* The next record, or NULL; one that goes around the buffer's end is put together in `buffer`. */
struct perf_event_header *perf_buffer_read(struct perf_iter *iter, void *buffer, int bufsize);
/* Gives the kernel the place of what was in the buffer at perf_iter_init. */
void perf_iter_continue(struct perf_iter *iter);

/* Maps the AUX area of 2^aux_size_shift pages. */
int perf_aux_map(struct perf_fd *pfd, struct perf_aux_map *aux, int aux_size_shift, bool snapshot);
/* Unmaps it, before perf_fd_close. */
void perf_aux_unmap(struct perf_fd *pfd, struct perf_aux_map *aux);

/* Whether all was read. */
static __inline__ int perf_iter_finished(struct perf_iter *iter)
{
    return iter->avail <= 0;
}

/* What follows a record's header. */
static __inline__ uint64_t *perf_hdr_payload(struct perf_event_header *hdr)
{
    return (uint64_t *)(void *)hdr + 1; /* a header has 8 bytes */
}

#ifdef __cplusplus
}
#endif

#endif
