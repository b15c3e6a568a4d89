/* topdown_benchmark.h: where the pipeline slots of a benchmark go, as counters of Google Benchmark.
 *
 *     static void sorts(benchmark::State &state)
 *     {
 *         topdown::benchmark_shares shares(state);
 *         for (auto _ : state)
 *             ...
 *     }
 *     BENCHMARK(sorts);
 *
 * shows retiring, bad_speculation, frontend_bound and backend_bound, parts of 1 that add up to 1; their bound, error; and level 2 with
 * error_level_2 where the CPU has it. Each thread of ->Threads(n) measures itself, and each thread's object has to be made before its
 * loop. A share is that of the slots of all threads together, and the bound is the mean of theirs, both weighed by slots. The counter
 * slots has those of an iteration. `topdown compare` reads two such results (--benchmark_out=FILE, JSON).
 * Counted is what lies between the object's beginning and end, but for what lies between pause() and resume(), which are state's
 * PauseTiming() and ResumeTiming() besides.
 *
 * Without counters there are none of these, standard error tells why, once, and times are as ever. C++11 or later; link with
 * -ltopdown and -lbenchmark. */
#ifndef TOPDOWN_BENCHMARK_H
#define TOPDOWN_BENCHMARK_H

#include <benchmark/benchmark.h>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <topdown.h>

namespace topdown {

/* Measures the calling thread as long as it lives. */
class benchmark_shares {
    enum { LEVEL_1 = 5, ALL = LEVEL_1 + 9 };

    /* What all threads of a run have measured: the last one that ends shows it. */
    struct run {
        std::mutex lock;
        int begun, present, measured[2]; /* threads; those with level 1, and with level 2 */
        bool simulated;                  /* TD_FLAG_SIMULATE */
        double slots[2];                 /* of these */
        double parts[ALL];               /* shares and bounds, times slots */
    };

    static run &all()
    {
        static run one;
        return one;
    }

    static const char *name(int k)
    {
        static const char *const names[ALL] = {
            "retiring",         "bad_speculation",    "frontend_bound", "backend_bound", "error",
            "heavy_operations", "light_operations",   "branch_mispredicts", "machine_clears", "fetch_latency",
            "fetch_bandwidth",  "memory_bound",       "core_bound",     "error_level_2"};
        return names[k];
    }

    static void say()
    {
        static std::once_flag once;
        std::call_once(once, [] {
            char why[1000] = "";
            td_last_error(why, sizeof why);
            std::fprintf(stderr, "topdown: no shares: %s\n", why);
        });
    }

    benchmark::State &state_;
    td_t *td_;
    td_sum sum_;
    td_sample begin_;
    bool counts_;

    void begin() { counts_ = td_ && td_read(td_, &begin_) == 0; }

    void end()
    {
        td_sample now;
        if (counts_ && (td_read(td_, &now) || td_sum_add(&sum_, &begin_, &now)))
            say();
        counts_ = false;
    }

    void add(run &run) const
    {
        td_l1 one;
        td_l2 two;
        const double slots = static_cast<double>(sum_.slots);
        if (td_ == NULL)
            return;
        if (td_sum_l1(&sum_, &one))
            return say();
        const double first[LEVEL_1] = {one.retiring, one.bad_speculation, one.frontend_bound, one.backend_bound, one.error};
        run.measured[0]++;
        run.simulated = (sum_.flags & TD_SAMPLE_SIMULATED) != 0;
        run.slots[0] += slots;
        for (int k = 0; k < LEVEL_1; k++)
            run.parts[k] += slots * first[k];
        if (td_sum_l2(&sum_, &two))
            return;
        const double second[ALL - LEVEL_1] = {two.heavy_operations, two.light_operations, two.branch_mispredicts,
                                              two.machine_clears,   two.fetch_latency,    two.fetch_bandwidth,
                                              two.memory_bound,     two.core_bound,       two.error};
        run.measured[1]++;
        run.slots[1] += slots;
        for (int k = LEVEL_1; k < ALL; k++)
            run.parts[k] += slots * second[k - LEVEL_1];
    }

    benchmark_shares(const benchmark_shares &);
    benchmark_shares &operator=(const benchmark_shares &);

public:
    /* `options` as in td_open, of the calling thread; NULL: its defaults. */
    explicit benchmark_shares(benchmark::State &state, const td_options *options = NULL)
        : state_(state), td_(NULL), sum_(), begin_(), counts_(false)
    {
        if (td_open(&td_, options)) {
            td_ = NULL;
            say();
        }
        {
            run &run = all();
            const std::lock_guard<std::mutex> guard(run.lock);
            run.begun++;
            run.present++;
        }
        begin();
    }

    /* (No thread ends before all have begun: they wait for each other at the loop's beginning.) */
    ~benchmark_shares()
    {
        end();
        run &run = all();
        const std::lock_guard<std::mutex> guard(run.lock);
        add(run);
        if (--run.present == 0) {
            /* Google Benchmark adds up what the threads have: this one has it all. What one thread lacks is not known of all. */
            for (int k = 0; k < ALL; k++) {
                const int level = k >= LEVEL_1;
                if (run.measured[level] == run.begun)
                    state_.counters[name(k)] = run.parts[k] / run.slots[level];
                run.parts[k] = 0;
            }
            if (run.begun == run.measured[0]) {
                state_.counters["slots"] = benchmark::Counter(run.slots[0], benchmark::Counter::kAvgIterations);
                if (run.simulated)
                    state_.counters["simulated"] = 1;
            }
            run.slots[0] = run.slots[1] = 0;
            run.begun = run.measured[0] = run.measured[1] = 0;
        }
        if (td_)
            td_close(td_);
    }

    void pause()
    {
        state_.PauseTiming();
        end();
    }

    void resume()
    {
        begin();
        state_.ResumeTiming();
    }
};

} /* namespace topdown */

#endif
