// The headers and the library from C++: a class that owns a list, function pointers, and members of the same names.
#include "expect.h"
#include <cstring>
#include <jsession.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

struct Free {
    void operator()(eventlist *list) const { free_eventlist(list); }
};

class Session {
    std::unique_ptr<eventlist, Free> list{alloc_eventlist()};

public:
    // the library's names are free to be members'
    int parse_events(const std::string &text) { return ::parse_events(list.get(), const_cast<char *>(text.c_str())); }
    int read_event(int cpu) const { return ::read_event(list->eventlist, cpu); }
    int setup_events() { return ::setup_events(list.get(), true, -1); }
    eventlist *operator->() const { return list.get(); }
    eventlist *get() const { return list.get(); }

    std::vector<uint64_t> values(int cpu) const
    {
        std::vector<uint64_t> values;
        for (event *e = list->eventlist; e != nullptr; e = e->next)
            values.push_back(event_scaled_value(e, cpu));
        return values;
    }
};

} // namespace

int main()
{
    Session session;
    CHECK(session.get() != nullptr);
    CHECK_EQ(session.parse_events("{software/config=1/,software/config=2,name=faults/},"), 0);
    CHECK_EQ(session.parse_events("msr/tsc/"), 0);
    CHECK_EQ(session.parse_events("none-such"), -1);
    if (session.setup_events() != 0)
        SKIP("no event can be opened on all of a CPU");

    // function pointers are to the same functions
    int (*const read_all)(eventlist *) = read_all_events;
    uint64_t (*const scaled)(event *, int) = &event_scaled_value;
    CHECK_EQ(read_all(session.get()), 0);
    const auto before = session.values(0);
    CHECK_EQ(before.size(), 3);
    CHECK_EQ(scaled(session->eventlist, 0), before[0]);
    CHECK_EQ(read_all_events(session.get()), 0);
    CHECK_EQ(session.read_event(0), 0);
    const auto after = session.values(0);
    CHECK(after[2] > before[2]); // the time stamp counter does not stand still

    char *text = nullptr;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    struct session_print how{};
    how.merge = true;
    session_print_aggr(stream, session.get(), &how);
    std::fclose(stream);
    const std::string lines(text, length);
    std::free(text);
    CHECK(lines.find("faults ") != std::string::npos && lines.find("msr/tsc/ ") != std::string::npos);

    perf_event_attr attr;
    std::memset(&attr, 0xff, sizeof attr);
    CHECK_EQ(resolve_event("software/config=2/", &attr), 0);
    CHECK_EQ(attr.config1, 0);
    return 0;
}
