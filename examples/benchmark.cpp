// Where do the slots of these benchmarks go?
#include <algorithm>
#include <random>
#include <topdown_benchmark.h>
#include <vector>

static std::vector<int> numbers()
{
    std::vector<int> all(100000);
    std::mt19937 random(1);
    for (int &number : all)
        number = static_cast<int>(random() % 1000000);
    return all;
}

static void sort_numbers(benchmark::State &state)
{
    const std::vector<int> original = numbers();
    std::vector<int> copy;
    topdown::benchmark_shares shares(state);
    for (auto _ : state) {
        shares.pause(); // the copy is not counted
        copy = original;
        shares.resume();
        std::sort(copy.begin(), copy.end());
        benchmark::DoNotOptimize(copy.data());
    }
}
BENCHMARK(sort_numbers);

static void sum_numbers(benchmark::State &state)
{
    const std::vector<int> all = numbers();
    topdown::benchmark_shares shares(state);
    for (auto _ : state) {
        long sum = 0;
        for (int number : all)
            sum += number;
        benchmark::DoNotOptimize(sum);
    }
}
BENCHMARK(sum_numbers)->Threads(1)->Threads(2);

BENCHMARK_MAIN();
