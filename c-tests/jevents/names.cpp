// A caller in C++: resolves names as a monitoring plugin does, PMU by PMU, through functions, pointers to them and
// members of the same names.
// needs: in-tree
#include "expect.h"
#include <functional>
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wold-style-cast" // as some programs are compiled
#include <jevents.h>
#include <jsession.h>
#pragma GCC diagnostic pop
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

struct freer {
    void operator()(char *text) const { free(text); }
};
using text = std::unique_ptr<char, freer>;

// An event on one PMU, as a plugin keeps it.
struct counter {
    perf_event_attr attr;
    std::string name, pmu;
};

class plugin {
  public:
    // a member of the name of a function of the library
    bool resolve_event(const char *name)
    {
        perf_event_attr attr;
        jevent_extra extra;
        if (resolve_event_extra(name, &attr, &extra) != 0)
            return false;
        CHECK(extra.decoded != nullptr);
        const std::string shown = extra.name ? extra.name : extra.decoded;
        int next = 0;
        do {
            const char *pmu = jevent_pmu_name(&extra, next, &next);
            CHECK(pmu != nullptr);
            counters.push_back({attr, shown, pmu});
        } while (jevent_next_pmu(&extra, &attr) > 0);
        CHECK(jevent_pmu_name(&extra, next, nullptr) == nullptr);

        jevent_extra copy;
        jevent_copy_extra(&copy, &extra);
        jevent_free_extra(&extra);
        CHECK(!copy.multi_pmu && copy.next_pmu == 0 && copy.decoded != nullptr);
        CHECK(jevent_next_pmu(&copy, &attr) == 0);
        jevent_free_extra(&copy);
        return true;
    }

    std::vector<counter> counters;
};

static void each_pmu_once()
{
    plugin all;
    CHECK(all.resolve_event("cbox/event=0x35,umask=0x1,name=lookups/"));
    CHECK_EQ(all.counters.size(), 4);
    const char *const pmus[] = {"uncore_cbox_0", "uncore_cbox_1", "uncore_cbox_10", "uncore_cbox_2"};
    const unsigned types[] = {20, 21, 30, 22};
    for (int i = 0; i < 4; i++) {
        const counter &one = all.counters[i];
        CHECK(one.pmu == pmus[i] && one.name == "lookups");
        CHECK(one.attr.type == types[i] && one.attr.config == 0x135);
        CHECK(text(resolve_pmu(types[i])).get() == one.pmu);
    }
    CHECK(all.resolve_event("cycles:u") && all.counters.size() == 5);
    CHECK(all.counters[4].pmu == "cpu" && all.counters[4].name == "cycles:u" && all.counters[4].attr.exclude_kernel);
    CHECK(!all.resolve_event("cbox_3/event=1/") && all.counters.size() == 5);
}

// Instances by number, until there is no such.
static void by_instance()
{
    int instances = 0;
    for (;; instances++) {
        perf_event_attr attr;
        if (resolve_event(("uncore_cbox_" + std::to_string(instances) + "/event=1/").c_str(), &attr) != 0)
            break;
        CHECK_EQ(attr.type, 20 + instances);
    }
    CHECK_EQ(instances, 3);
}

static int twice(int (*resolver)(const char *, perf_event_attr *), const char *name, perf_event_attr *attr)
{
    return resolver(name, attr) + resolver(name, attr);
}

static void by_pointer()
{
    perf_event_attr attr;
    CHECK_EQ(twice(resolve_event, "cpu/event=0x3c,acr_mask=1/", &attr), 0);
    CHECK(attr.config == 0x3c && attr.config2 == 1 && attr.size == 72 && attr.sig_data == 0);
    CHECK_EQ(twice(&jevent_name_to_attr, "event=0x3c", &attr), -2);
    const std::function<int(const char *, perf_event_attr *, jevent_extra *)> resolver = resolve_event_extra;
    CHECK_EQ(resolver("event=0x3c", &attr, nullptr), 0);
    CHECK_EQ(attr.config, 0x3c);
    const text shown(format_raw_event(&attr, (char *)"x"));
    CHECK(shown && shown.get() == std::string("cpu/config=0x3c,name=x/"));
}

static void numbers_of_pmus()
{
    perf_event_attr attr;
    jevent_extra extra;
    int next = 7;
    CHECK_EQ(resolve_event_extra("cbox/event=1/", &attr, &extra), 0);
    CHECK(jevent_pmu_name(&extra, -1, &next) == nullptr && next == -1);
    CHECK(jevent_pmu_name(&extra, 3, &next) == std::string("uncore_cbox_2") && next == 4);
    CHECK(jevent_pmu_name(&extra, 4, &next) == nullptr);
    CHECK(jevent_pmu_name(&extra, 2147483647, &next) == nullptr);
    // a program may take the paths, too
    CHECK_EQ(extra.pmus.gl_pathc, 4);
    const std::string path = extra.pmus.gl_pathv[1];
    CHECK(path.substr(path.rfind('/') + 1) == "uncore_cbox_1");
    jevent_free_extra(&extra);
    jevent_free_extra(&extra);
}

// What a program's function throws comes to who called the library, and the library goes on.
static int throws(void *, char *name, char *, char *)
{
    throw std::string(name);
}

static int throws_too(void *, char *name, char *, char *, char *)
{
    throw std::string(name);
}

template <class walk> static std::string thrown(walk calls)
{
    try {
        calls();
    } catch (const std::string &name) {
        return name;
    }
    return "nothing";
}

static void exceptions()
{
    CHECK(thrown([] { walk_perf_events(throws, nullptr); }).find("/an_event_whose_name") != std::string::npos);
    CHECK(thrown([] { walk_events(throws, nullptr); }) == "cpu_clk_unhalted.thread");
    CHECK(thrown([] { json_events(nullptr, throws_too, nullptr); }) != "nothing");
    perf_event_attr attr;
    CHECK_EQ(resolve_event("fake.cbo", &attr), 0);
}

int main(int, char **argv)
{
    if (access("/sys/bus/event_source/devices/uncore_cbox_10", F_OK) != 0)
        SKIP("to be run in the tree: c-tests/jevents/in-tree %s", argv[0]);
    each_pmu_once();
    by_instance();
    by_pointer();
    numbers_of_pmus();
    exceptions();
    return 0;
}
