/* The counters of Google Benchmark that topdown_benchmark.h gives are the true shares: of one thread, without what lies between pause()
 * and resume(), and of two threads that do different things, by the slots of both.
 * needs: counters, not-hybrid */
#include "pmu.h"
#if __has_include(<benchmark/benchmark.h>)
#include <topdown_benchmark.h>
#include <map>
#include <string>
#include <vector>

static const struct vm_mix ONE = {8, 2, 6, 2, 8, 8, 14}, OTHER = {40, 12, 4, 4, 4, 4, 4};

static void single(benchmark::State &state)
{
    vm_mix_set(ONE, 0, 0, 0);
    topdown::benchmark_shares shares(state);
    for (auto _ : state)
        work(100000);
}
BENCHMARK(single)->Iterations(50);

static void paused(benchmark::State &state)
{
    vm_mix_set(ONE, 0, 0, 0);
    topdown::benchmark_shares shares(state);
    for (auto _ : state) {
        shares.pause();
        vm_mix_set(OTHER, 0, 0, 0);
        work(300000);
        vm_mix_set(ONE, 0, 0, 0);
        shares.resume();
        work(100000);
    }
}
BENCHMARK(paused)->Iterations(50);

/* the second thread has three times as many slots */
static void two(benchmark::State &state)
{
    vm_mix_set(state.thread_index() == 0 ? ONE : OTHER, 0, 0, 0);
    topdown::benchmark_shares shares(state);
    for (auto _ : state)
        work(state.thread_index() == 0 ? 100000 : 300000);
}
BENCHMARK(two)->Iterations(50)->Threads(2);

class Keeper : public benchmark::ConsoleReporter {
public:
    std::map<std::string, benchmark::UserCounters> counters;

    void ReportRuns(const std::vector<Run> &runs) override
    {
        for (const Run &run : runs)
            counters[run.benchmark_name().substr(0, run.benchmark_name().find('/'))] = run.counters;
        ConsoleReporter::ReportRuns(runs);
    }
};

/* Level 1, then the first part of each of level 2, and what is left of it. */
static std::vector<double> truth(const struct vm_mix &mix)
{
    const double l1[] = {mix.retiring / 64.0, mix.bad / 64.0, mix.frontend / 64.0, (64.0 - mix.retiring - mix.bad - mix.frontend) / 64};
    const double part[] = {mix.heavy / 16.0, mix.mispredicts / 16.0, mix.latency / 16.0, mix.memory / 16.0};
    std::vector<double> all(l1, l1 + 4);
    for (int k = 0; k < 4; k++) {
        all.push_back(l1[k] * part[k]);
        all.push_back(l1[k] * (1 - part[k]));
    }
    return all;
}

static void is_true(benchmark::UserCounters &counters, double of_other)
{
    static const char *const names[] = {"retiring",         "bad_speculation",    "frontend_bound", "backend_bound",
                                        "heavy_operations", "light_operations",   "branch_mispredicts", "machine_clears",
                                        "fetch_latency",    "fetch_bandwidth",    "memory_bound",   "core_bound"};
    const std::vector<double> one = truth(ONE), other = truth(OTHER);
    CHECK(counters.count("retiring") == 1 && counters["error"].value > 0 && counters["error"].value < 0.02);
    CHECK(counters["slots"].value > 100000 && counters.count("simulated") == 0);
    for (int k = 0; k < 12; k++) {
        if (k < 4 || counters.count(names[k]))
            CHECK_NEAR(counters[names[k]].value, one[k] + of_other * (other[k] - one[k]),
                       counters[k < 4 ? "error" : "error_level_2"].value + 0.002);
    }
}

int main(int argc, char **argv)
{
    Keeper keeper;
    needs_known_mix();
    benchmark::Initialize(&argc, argv);
    CHECK_EQ(benchmark::RunSpecifiedBenchmarks(&keeper), 3);
    is_true(keeper.counters["single"], 0);
    is_true(keeper.counters["paused"], 0);
    is_true(keeper.counters["two"], 0.75);
}
#else
int main() { SKIP("pmu_benchmark: Google Benchmark is not installed (Debian: apt-get install libbenchmark-dev)"); }
#endif
