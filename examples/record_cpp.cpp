// Records a part of a program, however it is left.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <topdown_record.h>
#include <utility>
#include <vector>

class Recorded {
    std::string file_;

    static void say(const char *what)
    {
        std::string why(static_cast<std::size_t>(td_record_last_error(nullptr, 0)) + 1, '\0');
        td_record_last_error(&why[0], why.size());
        std::printf("%s: %s\n", what, why.c_str());
    }

public:
    explicit Recorded(std::string file) : file_(std::move(file))
    {
        if (td_record_start(nullptr))
            say("not recorded");
    }
    ~Recorded()
    {
        if (td_record_stop(file_.c_str()))
            say("no profile");
    }
    Recorded(const Recorded &) = delete;
    Recorded &operator=(const Recorded &) = delete;
};

static double sum(const std::vector<double> &numbers)
{
    double all = 0;
    for (double number : numbers)
        all += 1 / (1 + all * number);
    return all;
}

int main(int argc, char **argv)
{
    const std::vector<double> numbers(10000000, 0.5);
    try {
        Recorded recorded(argc > 1 ? argv[1] : "-");
        std::vector<std::thread> threads;
        for (int k = 0; k < 4; k++)
            threads.emplace_back([&] { std::printf("%g\n", sum(numbers)); });
        for (std::thread &thread : threads)
            thread.join();
        throw std::runtime_error("the profile is written all the same");
    } catch (const std::exception &thrown) {
        std::puts(thrown.what());
    }
}
