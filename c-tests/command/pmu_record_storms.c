/* `topdown record` of programs that come and go: 300 threads one after the other, at once and two at a time, 60 processes of which half execute a program,
 * libraries that are loaded and unloaded, code of a JIT compiler, a program that is stripped. The program's output and exit status are
 * its own; the truth is within the interval of each share, each function has its part of the time, and what was not sampled is said: with it no
 * time is missing. As an ordinary user.
 * pmu_record_storms SHAPE: this one alone.
 * needs: counters, not-hybrid, explore */
#include "lib/stat.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include "coverage.h"
#include "lib/storms.h"
#include <sys/mman.h>

static struct td_info info;

/* A program of storms.c, the file of its functions, and the letters that their names begin with: of two, either has as much of the work. */
struct shape {
    const char *name, *program, *argument;
    int status, threads, told, bursts; /* so many functions at least have shares, and there are so many bursts */
    const char *letters, *module;
};

static const struct shape SHAPES[] = {
    {"threads", "lib/storms", "threads", 21, STORM_THREADS + 1, 1, 0, "f", "storms"},
    {"crowd", "lib/storms", "crowd", 22, STORM_THREADS + 1, 0, 0, "f", "storms"},
    {"relay", "lib/storms", "relay", 27, STORM_THREADS + 1, 2, 100, "f", "storms"},
    {"forks", "lib/storms", "forks", 23, STORM_FORKS + 1, 1, 0, "f", "storms"},
    {"library", "lib/storms", "library", 24, 1, STORM_FUNCTIONS, 0, "gh", "libstorm-*.so"},
    {"jit", "lib/storms", "jit", 25, 1, STORM_FUNCTIONS, 0, "j", "[jit]"},
    {"stripped", "lib/storms-stripped", "plain", 26, 1, 1, 0, "", "storms-stripped"},
};

/* Records that find no room, for each burst. On arm64 the clock of a thread counts cycles, and the emulated machine's mixes take up to three times as
 * many for an instruction, in the same time: a new thread's ring may be full before the recorder comes, for which two others leave no CPU. What was
 * lost is in what was not seen, and said. */
#if defined(__x86_64__)
#define MOST_LOST 0
#else
#define MOST_LOST 0.2
#endif

/* The file in which a program of storms.c says what it did. */
static struct storm *spent_file(void)
{
    const int file = open(in_scratch("spent"), O_CREAT | O_TRUNC | O_RDWR, 0666);
    CHECK(file >= 0 && fchmod(file, 0666) == 0 && ftruncate(file, sizeof(struct storm)) == 0);
    struct storm *const storm = mmap(NULL, sizeof *storm, PROT_READ, MAP_SHARED, file, 0);
    CHECK(storm != MAP_FAILED);
    close(file);
    return storm;
}

/* The number before these words of a text ("1,014 bursts"); 0 if they are not in it. */
static double number_before(const char *text, const char *words)
{
    const char *const end = strstr(text, words), *at = end;
    char digits[32] = "";
    int count = 0;
    for (; at != NULL && at > text && (strchr(".,", at[-1]) || (at[-1] >= '0' && at[-1] <= '9')); at--) {}
    for (; at != NULL && at < end && count < 31; at++)
        if (*at != ',')
            digits[count++] = *at;
    return atof(digits);
}

/* Runs the program, by itself or under topdown, whose recording is all.recording. Its status; its output is in the file `output`. */
static int run(const struct shape *shape, int recorded)
{
    char *all[16] = {"/bin/bash", "-c", "out=$1; shift; exec \"$@\" > $out", "bash", in_scratch("output")};
    char *const record[] = {beside("../release/topdown"), "record", "--budget=50", "-F2000", "--gap=300", "-o", in_scratch("all.recording")};
    int n = 5;
    for (size_t k = 0; recorded && k < sizeof record / sizeof *record; k++)
        all[n++] = record[k];
    all[n++] = beside(shape->program);
    all[n++] = strdup(shape->argument);
    all[n++] = in_scratch("spent");
    unlink(in_scratch("all.recording"));
    return run_alone(all);
}

/* A profile of the recording, in that file. */
static void view(const char *file)
{
    CHECK_EQ(run_alone((char *[]){beside("../release/topdown"), "record", "--from", in_scratch("all.recording"), "-o", in_scratch(file), NULL}), 0);
}

/* What a profile tells of a function, or of the two that begin with either letter: its part of the time, by how much that may be off, and
 * whether it has shares, which are the truth. */
struct seen {
    double time, off;
    int told;
};

static struct seen seen_of(const struct csv *csv, const struct shape *shape, unsigned k, double *worst)
{
    struct seen seen = {0, 0, 0};
    int told = 0;
    for (const char *letter = shape->letters; *letter; letter++) {
        char name[16];
        snprintf(name, sizeof name, "%c%u", *letter, k);
        const int row = row_of(csv, name, "own");
        if (row == 0)
            continue;
        const double value = number(csv, row, "time", "");
        if (strchr(shape->module, '*') == NULL)
            CHECK(strcmp(csv_text(csv, row, "module"), shape->module) == 0);
        else
            CHECK(csv_text(csv, row, "module")[strlen("libstorm-")] == *letter);
        seen.time += value;
        seen.off += fmax(value - number(csv, row, "time", "_low"), number(csv, row, "time", "_high") - value);
        told += nodes_are_true(csv, row, mix_of_function(k), &info, 0, worst) > 0;
    }
    seen.told = told == (int)strlen(shape->letters);
    return seen;
}

/* How many functions have shares. What the program does besides (to begin a thread takes some time) is in no function's part. */
static int functions_are_true(const struct csv *csv, const struct shape *shape, const struct storm *storm, double *worst)
{
    struct seen seen[STORM_FUNCTIONS];
    const double unmet = 1 - number(csv, 1, "time", "_low"); /* (of all: so much may be what no burst met) */
    double time = 0, all = 0;
    int told = 0;
    for (unsigned k = 0; k < STORM_FUNCTIONS; k++) {
        seen[k] = seen_of(csv, shape, k, worst);
        if (seen[k].time == 0)
            seen[k].off = unmet;
        time += seen[k].time;
        all += (double)storm->spent[k];
        told += seen[k].told;
    }
    CHECK(time > 0.4 || shape->told == 0);
    for (int k = 0; k < STORM_FUNCTIONS && shape->told > 0; k++) {
        char name[16];
        snprintf(name, sizeof name, "function %d", k);
        lies_within(name, seen[k].time / time, (seen[k].time - seen[k].off) / time, (seen[k].time + seen[k].off) / time,
                    (double)storm->spent[k] / all);
    }
    return told;
}

/* Nothing is called by its name, but the time is in the file. */
static int stripped_is_true(const struct csv *csv)
{
    const int row = row_of(csv, "[unknown in storms-stripped]", "own");
    CHECK(row > 0 && number(csv, row, "time", "") > 0.95);
    return !isnan(number(csv, row, NODES[0], ""));
}

static void shape_is_true(const struct shape *shape)
{
    static struct csv csv;
    double all = 0, worst = 0;
    struct storm *storm = spent_file();
    CHECK(WEXITSTATUS(run(shape, 0)) == shape->status);
    char *const output = strdup(text_in("output"));
    CHECK(*output);
    munmap(storm, sizeof *storm);
    storm = spent_file();
    const int status = run(shape, 1);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != shape->status)
        FAIL("%s: wait status %#x: %s", shape->name, status, stat_said());
    CHECK(strcmp(text_in("output"), output) == 0 && *stat_said() == 0);
    view("r.csv");
    csv_read(&csv, in_scratch("r.csv"));
    for (int k = 0; k < STORM_FUNCTIONS; k++)
        all += (double)storm->spent[k];
    const int told = *shape->letters ? functions_are_true(&csv, shape, storm, &worst) : stripped_is_true(&csv);
    view("text");
    const char *const text = text_in("text");
    const double time = number(&csv, 1, "time_ns", ""), unseen = 1e6 * number_before(text, " ms, "), bursts = number_before(text, " bursts)");
    const double cpu = fmax((double)storm->cpu_ns, all); /* (other mixes take more cycles on arm64, and no longer) */
    fprintf(stderr, "%s: %.0f bursts, %d functions told, worst share %.2f points off; %.1f ms seen, at most %.1f ms not, of %.1f ms, of which %.1f are functions'\n",
            shape->name, bursts, told, 100 * worst, time / 1e6, unseen / 1e6, cpu / 1e6, all / 1e6);
    CHECK(told >= shape->told && bursts >= shape->bursts);
    if (number_before(text, " records found no room") > MOST_LOST * bursts || strstr(text, "because of") != NULL)
        FAIL("%s: %s", shape->name, text);
    CHECK_EQ((int)number_before(text, shape->threads == 1 ? " thread," : " threads,"), shape->threads);
    /* An instruction takes a nanosecond, and more where the machine's CPUs take turns, by the kernel's clock; and there is kernel mode. */
    CHECK(shape->threads > 1 || (time >= 0.9 * all && time <= 1.1 * cpu));
    /* (instants are random: 1 / sqrt(bursts) is one standard deviation) */
    const double sure = 1 - 3 / sqrt(bursts);
    CHECK(bursts > 10 ? time * sure <= cpu && time / sure + unseen >= all : shape->told == 0);
    munmap(storm, sizeof *storm);
    free(csv.text);
    free(output);
}

int main(int argc, char **argv)
{
    stat_begins();
#if defined(__x86_64__)
    if (e_core() >= 0)
        SKIP("pmu_record has hybrid CPUs; with as many CPUs as these the emulated machine takes minutes for storms");
#endif
    kernel_never_lowers();
    info = core_of_truth();
    for (size_t k = 0; k < sizeof SHAPES / sizeof *SHAPES; k++)
        if (argc == 1 || strcmp(argv[1], SHAPES[k].name) == 0)
            shape_is_true(&SHAPES[k]);
    return 0;
}
