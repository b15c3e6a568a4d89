/* perf-iter.h with a ring that this program writes itself: its own perf_event_open, which the library calls, gives a
 * file of memory. So there are records that no kernel writes, and an AUX area without hardware that traces. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <perf-iter.h>

#include "counters.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { RING = 4096, AUX_PAGES = 4 };
static int opened;

int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
    opened++;
    CHECK(attr->config == 42 && pid == 5 && cpu == 6 && group_fd == -1 && flags == 0);
    const int fd = memfd_create("ring", 0);
    CHECK_EQ(ftruncate(fd, 4096 + RING + AUX_PAGES * 4096), 0);
    return fd;
}

static char *data_of(struct perf_fd *fd) { return (char *)fd->mpage + 4096; }

static void put(struct perf_fd *fd, uint16_t size)
{
    struct perf_event_header header = {99, 0, size};
    memcpy(data_of(fd) + fd->mpage->data_head % RING, &header, sizeof header);
    fd->mpage->data_head += size ? size : 8;
}

/* The loop that every program has. It must end. */
static int count(struct perf_fd *fd, int room)
{
    char buffer[256];
    int records = 0, turns = 0;
    struct perf_iter iter;
    perf_iter_init(&iter, fd);
    while (!perf_iter_finished(&iter)) {
        CHECK(turns++ < 1000);
        struct perf_event_header *hdr = perf_buffer_read(&iter, buffer, room);
        if (!hdr)
            continue;
        CHECK_EQ(hdr->type, 99);
        records++;
    }
    perf_iter_continue(&iter);
    CHECK_EQ(fd->mpage->data_tail, fd->mpage->data_head);
    return records;
}

static void aux_area(struct perf_fd *fd, bool snapshot)
{
    struct perf_aux_map aux;
    unsigned char resident[AUX_PAGES];
    CHECK_EQ(perf_aux_map(fd, &aux, 2, snapshot), 0);
    CHECK_EQ(fd->mpage->aux_offset, 4096 + RING);
    CHECK_EQ(fd->mpage->aux_size, AUX_PAGES * 4096);
    const uint64_t mark = 0x1234 + snapshot;
    CHECK_EQ(pwrite(fd->pfd, &mark, sizeof mark, 4096 + RING + 3 * 4096), sizeof mark);
    CHECK_EQ(((uint64_t *)aux.aux_map)[3 * 512], mark);
    /* the kernel writes to an area of snapshots without asking: it must not be writable here */
    CHECK_EQ(mprotect(aux.aux_map, 4096, PROT_READ), 0);
    errno = 0;
    const int zero = open("/dev/zero", 0);
    CHECK(zero >= 0);
    CHECK_EQ(read(zero, (char *)aux.aux_map + 4096, 8), snapshot ? -1 : 8);
    close(zero);
    void *where = aux.aux_map;
    perf_aux_unmap(fd, &aux);
    CHECK_EQ(mincore(where, AUX_PAGES * 4096, resident), -1);
    perf_aux_unmap(fd, &aux);
}

int main(void)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, 42);
    struct perf_fd fd;
    CHECK_EQ(perf_fd_open_other(&fd, &attr, 0, 5, 6), 0);
    CHECK_EQ(opened, 1);

    put(&fd, 24);
    put(&fd, 16);
    CHECK_EQ(count(&fd, 256), 2);

    /* up to the very end, and over it */
    put(&fd, RING - 40 - 64);
    put(&fd, 64);
    CHECK_EQ(fd.mpage->data_head % RING, 0);
    CHECK_EQ(count(&fd, 256), 2);
    put(&fd, RING - 32);
    CHECK_EQ(count(&fd, 256), 1);
    put(&fd, 64);
    put(&fd, 8);
    CHECK_EQ(count(&fd, 256), 2);

    /* one that wraps and does not fit is skipped */
    put(&fd, RING - 40 - 32);
    CHECK_EQ(count(&fd, 256), 1);
    put(&fd, 64);
    put(&fd, 8);
    CHECK_EQ(count(&fd, 63), 1);

    /* those that are none */
    put(&fd, 16);
    put(&fd, 0);
    put(&fd, 16);
    CHECK_EQ(count(&fd, 256), 1);
    put(&fd, 16);
    fd.mpage->data_head -= 8;
    CHECK_EQ(count(&fd, 256), 0);
    fd.mpage->data_head += RING + 8;
    CHECK_EQ(count(&fd, 256), 0);

    aux_area(&fd, false);
    aux_area(&fd, true);
    perf_fd_close(&fd);
    return 0;
}
