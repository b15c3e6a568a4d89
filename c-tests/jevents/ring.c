/* perf-iter.h with a real ring: each change of this thread's name is one record, so how many there must be is known,
 * and a ring of one page wraps again and again. */
#include <perf-iter.h>
#include <perf-record.h>

#include "counters.h"
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { CHANGES = 5000, ROUND = 40 };

static struct perf_event_attr names(void)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
    attr.comm = 1;
    attr.disabled = 1;
    return attr;
}

/* names of 1 to 15 characters: records of 24 and of 32 bytes */
static void name_of(char *name, int i)
{
    snprintf(name, 16, "%0*d", 5 + i % 11, i);
}

/* Records of what is there, from the i-th on; returns the number of the one that comes next. */
static int read_all(struct perf_fd *fd, int i, int *copied)
{
    uint64_t buffer[4];
    char name[16];
    struct perf_iter iter;
    perf_iter_init(&iter, fd);
    CHECK_EQ(perf_iter_finished(&iter), iter.avail == 0);
    while (!perf_iter_finished(&iter)) {
        struct perf_event_header *hdr = perf_buffer_read(&iter, buffer, sizeof buffer);
        const struct perf_record_comm *comm = (struct perf_record_comm *)(void *)hdr;
        CHECK(hdr != NULL);
        CHECK_EQ(hdr->type, PERF_RECORD_COMM);
        CHECK((const uint64_t *)(const void *)&comm->pid == perf_hdr_payload(hdr));
        CHECK_EQ(comm->pid, getpid());
        CHECK_EQ(comm->tid, getpid());
        name_of(name, i);
        CHECK(strcmp(comm->comm, name) == 0);
        *copied += (void *)hdr == (void *)buffer;
        i++;
    }
    perf_iter_continue(&iter);
    CHECK_EQ(fd->mpage->data_tail, iter.raw_head);
    return i;
}

static void change(int from, int to)
{
    char name[16];
    for (int i = from; i < to; i++) {
        name_of(name, i);
        CHECK_EQ(prctl(PR_SET_NAME, name), 0);
    }
}

/* What was not read is dropped by perf_iter_continue. */
static void stops_early(struct perf_fd *fd)
{
    struct perf_iter iter;
    uint64_t buffer[4];
    int copied = 0;
    change(0, 10);
    perf_iter_init(&iter, fd);
    CHECK(perf_buffer_read(&iter, buffer, sizeof buffer) != NULL);
    change(10, 13);
    perf_iter_continue(&iter);
    CHECK_EQ(read_all(fd, 10, &copied), 13);
}

/* More than fits is lost, and the kernel says how much. */
static void overflows(struct perf_fd *fd)
{
    struct perf_iter iter;
    uint64_t buffer[8];
    int read = 0, copied = 0;
    change(0, 1000);
    perf_iter_init(&iter, fd);
    CHECK(iter.avail > 4096 - 32 && iter.avail <= 4096);
    while (!perf_iter_finished(&iter)) {
        CHECK(perf_buffer_read(&iter, buffer, sizeof buffer) != NULL);
        read++;
    }
    perf_iter_continue(&iter);
    change(1000, 1001); /* the next record comes after one of what was lost */
    perf_iter_init(&iter, fd);
    const struct perf_record_lost *lost = (void *)perf_buffer_read(&iter, buffer, sizeof buffer);
    CHECK(lost != NULL);
    CHECK_EQ(lost->hdr.type, PERF_RECORD_LOST);
    CHECK_EQ(lost->lost, 1000 - read);
    const struct perf_event_header *last = perf_buffer_read(&iter, buffer, sizeof buffer);
    CHECK(last != NULL && last->type == PERF_RECORD_COMM);
    CHECK(perf_iter_finished(&iter));
    CHECK(perf_buffer_read(&iter, buffer, sizeof buffer) == NULL);
    perf_iter_continue(&iter);
    CHECK_EQ(read_all(fd, 0, &copied), 0);
}

static void failures(void)
{
    struct perf_event_attr attr = names();
    struct perf_fd fd = {7, (void *)8, 9};
    struct perf_aux_map aux;
    const int free_fd = dup(2);
    close(free_fd);
    const int shifts[] = {20, 30, 31, 32, 64, -1};
    for (unsigned i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        errno = 0;
        CHECK_EQ(perf_fd_open(&fd, &attr, shifts[i]), -1);
        CHECK(errno == EINVAL && fd.pfd == -1 && fd.mpage == NULL);
        CHECK_EQ(perf_mmap_size(shifts[i]), 0);
    }
    CHECK_EQ(perf_mmap_size(0), 8192);
    CHECK_EQ(perf_mmap_size(3), 9 * 4096);
    attr.type = 12345;
    errno = 0;
    CHECK_EQ(perf_fd_open(&fd, &attr, 0), -1);
    CHECK(errno == ENOENT && fd.pfd == -1);
    attr = names();
    errno = 0;
    CHECK_EQ(perf_fd_open_other(&fd, &attr, 0, 0, 1 << 20), -1);
    CHECK(errno != 0);
    /* inherited events of a thread are not mapped */
    attr.inherit = 1;
    errno = 0;
    CHECK_EQ(perf_fd_open(&fd, &attr, 0), -1);
    CHECK(errno == EINVAL && fd.pfd == -1);
    perf_fd_close(&fd);
    perf_fd_close(NULL);
    CHECK_EQ(perf_enable(&fd), -1);
    CHECK_EQ(perf_disable(NULL), -1);
    CHECK_EQ(perf_fd_open(NULL, &attr, 0), -1);
    CHECK_EQ(perf_fd_open(&fd, NULL, 0), -1);

    attr = names();
    CHECK_EQ(perf_fd_open(&fd, &attr, 0), 0);
    errno = 0;
    CHECK_EQ(perf_aux_map(&fd, &aux, 0, false), -1); /* only hardware traces have one */
    CHECK(errno != 0 && aux.aux_map == (void *)-1);
    CHECK_EQ(fd.mpage->aux_size, 0);
    CHECK_EQ(perf_aux_map(&fd, &aux, 60, false), -1);
    perf_aux_unmap(&fd, &aux);
    perf_aux_unmap(&fd, NULL);
    CHECK_EQ(perf_aux_map(NULL, &aux, 0, true), -1);
    perf_fd_close(&fd);
    CHECK(fd.mpage == NULL);
    perf_fd_close(&fd);
    CHECK_EQ(dup(2), free_fd);
    close(free_fd);
}

/* A forked child has no ring: what it has where the ring was stays when it closes that, and its own ring does not. */
static void in_a_child(struct perf_fd *fd)
{
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct perf_event_attr attr = names();
        struct perf_fd own;
        unsigned char resident;
        volatile char *place = mmap(fd->mpage, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(place == (char *)fd->mpage);
        place[4096] = 1;
        perf_fd_close(fd);
        CHECK(fd->mpage == NULL && fd->pfd == -1);
        CHECK_EQ(place[4096], 1);
        CHECK_EQ(perf_fd_open(&own, &attr, 0), 0);
        void *ring = own.mpage;
        perf_fd_close(&own);
        CHECK(mincore(ring, 4096, &resident) < 0 && errno == ENOMEM);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    struct perf_event_attr attr = names();
    struct perf_fd fd;
    int next = 0, copied = 0;
    if (perf_fd_open(&fd, &attr, 0) < 0)
        SKIP("records of this thread's name: %s", strerror(errno));
    CHECK(fd.pfd >= 0 && fd.mpage != NULL && fd.buf_size_shift == 0);
    change(0, 3); /* not enabled */
    CHECK_EQ(read_all(&fd, 0, &copied), 0);
    CHECK_EQ(perf_enable(&fd), 0);
    for (int i = 0; i < CHANGES; i += ROUND) {
        change(i, i + ROUND);
        next = read_all(&fd, next, &copied);
        CHECK_EQ(next, i + ROUND);
    }
    CHECK(fd.mpage->data_head / 4096 > 25);
    CHECK(copied > 5); /* those at the end of the ring */
    stops_early(&fd);
    overflows(&fd);
    CHECK_EQ(perf_disable(&fd), 0);
    change(0, 3);
    CHECK_EQ(read_all(&fd, 0, &copied), 0);
    in_a_child(&fd);
    perf_fd_close(&fd);
    failures();
    return 0;
}
