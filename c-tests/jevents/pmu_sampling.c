/* Samples of a hardware counter by perf-iter.h: thousands in a ring of one page. Samples, and what the kernel says was
 * lost, account for every instruction. */
#include <perf-iter.h>
#include <perf-record.h>

#include "counters.h"

enum { PERIOD = 50021 };

/* IDENTIFIER, IP, TID, TIME, and then PERIOD */
struct sample {
    struct perf_record_sample_ip_tid_time start;
    uint64_t period;
};

struct found {
    uint64_t samples, lost, periods, last_time;
};

static void read_all(struct perf_fd *fd, struct found *found)
{
    struct perf_iter iter;
    uint64_t buffer[32];
    perf_iter_init(&iter, fd);
    while (!perf_iter_finished(&iter)) {
        const struct perf_event_header *hdr = perf_buffer_read(&iter, buffer, sizeof buffer);
        CHECK(hdr != NULL);
        if (hdr->type == PERF_RECORD_LOST) {
            found->lost += ((const struct perf_record_lost *)(const void *)hdr)->lost;
            continue;
        }
        const struct sample *sample = (const void *)hdr;
        CHECK_EQ(hdr->type, PERF_RECORD_SAMPLE);
        CHECK_EQ(hdr->size, sizeof *sample);
        CHECK_EQ(sample->start.pid, getpid());
        CHECK_EQ(sample->start.tid, getpid());
        CHECK(sample->start.ip != 0 && sample->start.time > found->last_time);
        found->last_time = sample->start.time;
        found->periods += sample->period;
        found->samples++;
    }
    perf_iter_continue(&iter);
}

static uint64_t count(struct perf_fd *fd)
{
    uint64_t value;
    CHECK_EQ(read(fd->pfd, &value, sizeof value), sizeof value);
    return value;
}

int main(void)
{
    struct perf_event_attr attr = attr_of(PERF_TYPE_RAW, INSTRUCTIONS);
    struct found found = {0, 0, 0, 0};
    struct perf_fd fd;
    needs_known_counts();
    /* where interrupts have taken long the kernel has lowered it, and throttles */
    FILE *rate = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "w");
    CHECK(rate != NULL && fputs("100000", rate) >= 0 && fclose(rate) == 0);
    attr.sample_period = PERIOD;
    attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
    attr.disabled = 1;
    CHECK_EQ(perf_fd_open(&fd, &attr, 0), 0);
    work(20 * PERIOD);
    CHECK_EQ(count(&fd), 0);
    CHECK_EQ(perf_enable(&fd), 0);
    for (int i = 0; i < 100; i++) {
        work(40 * PERIOD);
        read_all(&fd, &found);
    }
    CHECK(found.samples >= 4000 && found.samples < 4000 + 4000 / 50);
    CHECK_EQ(found.lost, 0);
    CHECK_EQ(found.periods, found.samples * PERIOD);
    CHECK(fd.mpage->data_head / 4096 > 30);
    CHECK_EQ(count(&fd) / PERIOD, found.samples);

    /* more than the ring has room for */
    work(1000 * PERIOD);
    read_all(&fd, &found);
    work(2 * PERIOD);
    CHECK_EQ(perf_disable(&fd), 0);
    read_all(&fd, &found);
    CHECK(found.lost > 800);
    const uint64_t stopped = count(&fd);
    CHECK_EQ(stopped / PERIOD, found.samples + found.lost);
    work(20 * PERIOD);
    CHECK_EQ(count(&fd), stopped);
    perf_fd_close(&fd);
    return 0;
}
