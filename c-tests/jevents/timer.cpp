// A benchmark's timer on rdpmc.h, as its users write them: open, read, work, read, close. Where there are no hardware
// counters it is given an event of the kernel's, which RDPMC cannot read.
#include <rdpmc.h>

#include "counters.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <initializer_list>
#include <thread>

namespace {

constexpr long page = 4096;

class timer {
    rdpmc_ctx ctx;
    unsigned long long started = 0;

  public:
    explicit timer(perf_event_attr attr, timer *leader = nullptr)
    {
        if (rdpmc_open_attr(&attr, &ctx, leader ? &leader->ctx : nullptr) < 0)
            SKIP("this event does not open: %s", strerror(errno));
        CHECK(ctx.fd >= 0 && ctx.buf != nullptr);
    }
    timer(const timer &) = delete;
    ~timer() { rdpmc_close(&ctx); }
    void start() { started = rdpmc_read(&ctx); }
    unsigned long long stop() { return rdpmc_read(&ctx) - started; }
    const rdpmc_ctx &open() const { return ctx; }
};

perf_event_attr page_faults(uint64_t read_format)
{
    perf_event_attr attr = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    attr.read_format = read_format;
    return attr;
}

// Touches so many new pages.
void touch(int pages)
{
    void *map = mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    CHECK_EQ(madvise(map, pages * page, MADV_NOHUGEPAGE), 0);
    for (int i = 0; i < pages; i++)
        static_cast<volatile char *>(map)[i * page] = 1;
    CHECK_EQ(munmap(map, pages * page), 0);
}

long faults()
{
    rusage usage;
    CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_minflt + usage.ru_majflt;
}

// Each of these counts what this thread touches: as the kernel has it, who counts a little more under Valgrind.
void count(std::initializer_list<timer *> timers, int pages)
{
    const long before = faults();
    for (auto *one : timers)
        one->start();
    const long least = [&] { const long start = faults(); touch(pages); return faults() - start; }();
    CHECK(least >= pages);
    for (auto *one : timers) {
        const long counted = static_cast<long>(one->stop());
        CHECK(counted >= least && counted <= faults() - before);
    }
}

// What the kernel reads of each member is that member's, in any format.
void formats()
{
    const uint64_t flags[] = {PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_FORMAT_ID,
                              PERF_FORMAT_GROUP};
    for (unsigned set = 0; set < 16; set++) {
        uint64_t format = 0;
        for (int bit = 0; bit < 4; bit++)
            format |= set >> bit & 1 ? flags[bit] : 0;
        perf_event_attr dummy = page_faults(format);
        dummy.config = PERF_COUNT_SW_DUMMY;
        timer leader(page_faults(format)), nothing(dummy, &leader), member(page_faults(format), &leader);
        nothing.start();
        count({&leader, &member}, 37);
        CHECK_EQ(nothing.stop(), 0);
    }
}

// A member whose leader is closed goes on; so does one that lost a member before it.
void lost_leader()
{
    for (uint64_t format : {uint64_t(PERF_FORMAT_GROUP), uint64_t(PERF_FORMAT_GROUP | PERF_FORMAT_ID)}) {
        perf_event_attr attr = page_faults(format);
        rdpmc_ctx leader, member;
        CHECK_EQ(rdpmc_open_attr(&attr, &leader, nullptr), 0);
        CHECK_EQ(rdpmc_open_attr(&attr, &member, &leader), 0);
        touch(5);
        const auto before = rdpmc_read(&member);
        CHECK(before >= 5 && before < 500);
        rdpmc_close(&leader);
        touch(5);
        const auto after = rdpmc_read(&member);
        CHECK(after >= before + 5 && after < before + 500);
        rdpmc_close(&member);
    }
}

int descriptors()
{
    const int fd = dup(2);
    close(fd);
    return fd;
}

void failures()
{
    rdpmc_ctx ctx = {7, reinterpret_cast<perf_event_mmap_page *>(8)};
    perf_event_attr attr = page_faults(0);
    const int before = descriptors();
    attr.type = 12345;
    errno = 0;
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, nullptr), -1);
    CHECK(errno == ENOENT && ctx.fd == -1 && ctx.buf == nullptr);
    CHECK_EQ(rdpmc_read(&ctx), 0);
    rdpmc_close(&ctx);
    // inherited events are not mapped
    attr = page_faults(0);
    attr.inherit = 1;
    errno = 0;
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, nullptr), -1);
    CHECK(errno == EINVAL && ctx.fd == -1 && ctx.buf == nullptr);
    CHECK_EQ(descriptors(), before);
    rdpmc_close(&ctx);
    rdpmc_close(nullptr);
    CHECK_EQ(rdpmc_read(nullptr), 0);
    CHECK_EQ(rdpmc_open_attr(nullptr, &ctx, nullptr), -1);
    CHECK_EQ(rdpmc_open_attr(&attr, nullptr, nullptr), -1);
    CHECK_EQ(rdpmc_open(0xc0, nullptr), -1);
    // twice
    attr.inherit = 0;
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, nullptr), 0);
    rdpmc_close(&ctx);
    CHECK(ctx.fd == -1 && ctx.buf == nullptr);
    rdpmc_close(&ctx);
    CHECK_EQ(descriptors(), before);
}

// A forked child has no control page. What is where it was is the child's own.
void forked()
{
    rdpmc_ctx ctx;
    perf_event_attr attr = page_faults(0);
    CHECK_EQ(rdpmc_open_attr(&attr, &ctx, nullptr), 0);
    touch(10);
    CHECK(rdpmc_read(&ctx) > 0);
    const pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(rdpmc_read(&ctx), 0);
        void *own = mmap(ctx.buf, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(own == ctx.buf);
        rdpmc_close(&ctx);
        *static_cast<volatile char *>(own) = 1;
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK(rdpmc_read(&ctx) < 1000);
    rdpmc_close(&ctx);
}

} // namespace

int main()
{
    timer one(page_faults(0));
    CHECK_EQ(one.open().buf->index, 0);
    count({&one}, 100);

    std::thread([] {
        timer own(page_faults(0));
        count({&own}, 11);
    }).join();

    formats();
    lost_leader();
    failures();
    forked();
}
