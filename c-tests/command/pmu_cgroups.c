/* `topdown stat --per-cgroup` and `-G`: what each cgroup's tasks did, however many there are, in each other, with tasks that are moved
 * and ones that have a quota: slots and shares of each are true but for what no record tells of, which is little and in the rest.
 * needs: counters or general-counters, not-hybrid */
#include "lib/stat.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MOUNT "/sys/fs/cgroup"
enum { MANY = 200, RECORD = 4000000 };

static struct csv csv;
static double unit; /* slots of a unit of work */

static void write_to(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        FAIL("%s to %s: %s", text, path, strerror(errno));
    close(fd);
}

static char *of(const char *group, const char *file)
{
    char *path = NULL;
    CHECK(asprintf(&path, MOUNT "%s/%s", group, file) > 0);
    return path;
}

static void join(const char *group) { write_to(of(group, "cgroup.procs"), "0"); }

/* A child that does this work in a cgroup, and then so much in another one, if there is one. */
static void works(const char *group, int mix, double units, const char *then, int then_mix, double then_units)
{
    if (fork() != 0)
        return;
    join(group);
    mix_is(MIXES[mix]);
    work((long)(units * UNIT));
    if (then) {
        join(then);
        mix_is(MIXES[then_mix]);
        work((long)(then_units * UNIT));
    }
    _exit(0);
}

static const char *const CATEGORIES[] = {"retiring", "bad_speculation", "frontend_bound", "backend_bound"};

/* What /metrics has at this port, in all. */
static char *scraped(int port)
{
    static char text[1 << 16];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char ask[] = "GET /metrics HTTP/1.0\r\n\r\n";
    const int to = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(to, (struct sockaddr *)&at, sizeof at) == 0 && write(to, ask, sizeof ask - 1) == (ssize_t)(sizeof ask - 1));
    size_t length = 0;
    for (ssize_t got; (got = read(to, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = 0;
    close(to);
    return text;
}

/* Works in a cgroup, then asks for metrics until they have that; their slots of each category are in the file `scraped`. */
static void works_and_asks(const char *directory, double least)
{
    char path[PATH_MAX], said[4096] = "";
    int port = 0;
    join("/t/a");
    mix_is(MIXES[0]);
    work(80L * UNIT);
    snprintf(path, sizeof path, "%s/said", directory);
    FILE *file = fopen(path, "r");
    CHECK(file && fread(said, 1, sizeof said - 1, file) > 0 && strstr(said, "127.0.0.1:") && sscanf(strstr(said, "127.0.0.1:"), "127.0.0.1:%d", &port) == 1);
    fclose(file);
    unsigned long long slots[4], all;
    do {
        const char *const text = scraped(port);
        all = 0;
        for (int k = 0; k < 4; k++) {
            char sample[128];
            snprintf(sample, sizeof sample, "\ntopdown_cgroup_slots_total{cgroup=\"/t/a\",name=\"/t/a\",category=\"%s\"} ", CATEGORIES[k]);
            const char *const found = strstr(text, sample);
            slots[k] = found ? strtoull(found + strlen(sample), NULL, 10) : 0;
            all += slots[k];
        }
    } while ((double)all < least);
    snprintf(path, sizeof path, "%s/scraped", directory);
    CHECK((file = fopen(path, "w")) != NULL);
    fprintf(file, "%llu %llu %llu %llu\n", slots[0], slots[1], slots[2], slots[3]);
    fclose(file);
}

/* What is counted: this program again. */
static int groups_work(const char *shape)
{
    if (strcmp(shape, "nested") == 0) {
        works("/t/a", 0, 80, NULL, 0, 0);
        works("/t/a/x", 1, 60, NULL, 0, 0);
        works("/t/b", 2, 50, NULL, 0, 0);
        works("/t/b", 3, 30, NULL, 0, 0);
    } else if (strcmp(shape, "moved") == 0) {
        works("/t/a", 0, 50, "/t/b", 2, 40);
        works("/t/b", 2, 40, "/t/a", 0, 30);
    } else {
        for (int k = 0; k < MANY; k++) {
            char group[32];
            snprintf(group, sizeof group, "/t/many/%d", k);
            works(group, k % 4, 2 + k % 4, NULL, 0, 0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}

/* Counts a shape. */
static void count(const char *shape, const char *option)
{
    const pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(dup2(open(in_scratch("said"), O_CREAT | O_WRONLY | O_TRUNC, 0666), 2), 2);
        execl(beside("../release/topdown"), "topdown", "stat", "--td-level=1", option, "-o", in_scratch("r.csv"), "--",
              own_path(), shape, (char *)NULL);
        _exit(126);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (status)
        FAIL("stat %s: %#x: %s", option, (unsigned)status, stat_said());
    csv_read(&csv, in_scratch("r.csv"));
}

static double slots_of(const char *group) { return csv_number(&csv, csv_find_in(&csv, "cgroup", group), "slots"); }

/* A cgroup did so many units of each mix; of so many stretches from one record to the next it is not known that they were its own. */
static void row_is(const char *group, const double *units, int stretches)
{
    const double lost = RECORD * stretches, little = unit / 50;
    const int row = csv_find_in(&csv, "cgroup", group);
    CHECK(row > 0);
    double all = 0, share[4] = {0};
    for (int mix = 0; mix < 4; mix++) {
        const struct truth truth = truth_of(MIXES[mix]);
        for (int k = 0; k < 4; k++)
            share[k] += units[mix] * truth.l1[k];
        all += units[mix];
    }
    const double slots = csv_number(&csv, row, "slots"), error = csv_number(&csv, row, "error_1");
    fprintf(stderr, "%s: %.2f units of %.2f, within %g\n", group, slots / unit, all, error);
    CHECK(slots >= all * unit - lost && slots <= all * unit + little * (1 + stretches));
    for (int k = 0; k < 4; k++) {
        char column[32];
        snprintf(column, sizeof column, "tma_%s", CATEGORIES[k]);
        CHECK_NEAR(csv_number(&csv, row, column), share[k] / all, error + lost / slots);
    }
    CHECK(error < 0.01);
}

static void rest_is(double most)
{
    const double rest = slots_of("rest"), all = slots_of("all");
    double told = 0;
    for (int row = 1; row < csv.rows; row++)
        if (strcmp(csv_text(&csv, row, "cgroup"), "rest") && strcmp(csv_text(&csv, row, "cgroup"), "all"))
            told += csv_number(&csv, row, "slots");
    fprintf(stderr, "rest %.0f of %.0f\n", rest, all);
    CHECK_NEAR(told + rest, all, 0.5);
    CHECK(rest <= most);
}

static void make(const char *group) { CHECK(mkdir(of(group, ""), 0755) == 0 || errno == EEXIST); }

static void metrics_are_true(void)
{
    const int any = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    CHECK(ioctl(any, SIOCSIFFLAGS, &loopback) == 0);
    close(any);
    const double least = 80 * unit - RECORD;
    char text[40];
    snprintf(text, sizeof text, "%.0f", least);
    const pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(dup2(open(in_scratch("said"), O_CREAT | O_WRONLY | O_TRUNC, 0666), 2), 2);
        execl(beside("../release/topdown"), "topdown", "stat", "--td-level=1", "-Gt/a", "--open-metrics=0", "-o", in_scratch("r.csv"), "--", own_path(),
              "scraped", stat_scratch, text, (char *)NULL);
        _exit(126);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (status)
        FAIL("%#x: %s", (unsigned)status, stat_said());
    unsigned long long slots[4];
    CHECK_EQ(sscanf(text_in("scraped"), "%llu %llu %llu %llu", &slots[0], &slots[1], &slots[2], &slots[3]), 4);
    const struct truth truth = truth_of(MIXES[0]);
    const double all = (double)(slots[0] + slots[1] + slots[2] + slots[3]);
    for (int k = 0; k < 4; k++)
        CHECK_NEAR((double)slots[k] / all, truth.l1[k], unit / 50 / all); /* its way into the cgroup */
}

int main(int count_of, char **arguments)
{
    if (count_of > 3)
        return works_and_asks(arguments[2], atof(arguments[3])), 0;
    if (count_of > 1)
        return groups_work(arguments[1]);
    stat_begins();
    if (geteuid() != 0)
        SKIP("cgroups are made by root");
    if (access(MOUNT "/cgroup.procs", W_OK) && mount("none", MOUNT, "cgroup2", 0, NULL))
        SKIP("no cgroups: %s", strerror(errno));
    /* (before the first controller is switched on here, cgroups have none for perf events, either) */
    write_to(MOUNT "/cgroup.subtree_control", "+cpu");
    unit = unit_slots(TD_FLAG_COUNTERS);
    make("/t"), make("/t/a"), make("/t/a/x"), make("/t/b"), make("/t/many");
    for (int k = 0; k < MANY; k++) {
        char group[32];
        snprintf(group, sizeof group, "/t/many/%d", k);
        make(group);
    }
    const double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);

    count("nested", "--per-cgroup");
    row_is("/t/a", (double[]){80, 0, 0, 0}, 1);
    row_is("/t/a/x", (double[]){0, 60, 0, 0}, 1);
    row_is("/t/b", (double[]){0, 0, 50, 30}, 2);
    rest_is((cpus + 4) * RECORD);

    count("nested", "--per-cgroup=2");
    row_is("/t/a", (double[]){80, 60, 0, 0}, 2);
    CHECK(csv_find_in(&csv, "cgroup", "/t/a/x") < 0);

    count("nested", "-Gt/a,/t/a/x,t");
    row_is("/t", (double[]){80, 60, 50, 30}, 4);
    row_is("/t/a", (double[]){80, 60, 0, 0}, 2);
    row_is("/t/a/x", (double[]){0, 60, 0, 0}, 1);
    CHECK(csv_find_in(&csv, "cgroup", "/t/b") < 0);

    count("moved", "--per-cgroup");
    row_is("/t/a", (double[]){80, 0, 0, 0}, 3);
    row_is("/t/b", (double[]){0, 0, 80, 0}, 3);
    rest_is((cpus + 4) * RECORD);

    /* a tenth of a CPU, so that it is switched off and on */
    write_to(of("/t", "cgroup.subtree_control"), "+cpu");
    write_to(of("/t/b", "cpu.max"), "10000 50000");
    count("nested", "--per-cgroup");
    row_is("/t/a", (double[]){80, 0, 0, 0}, 1);
    row_is("/t/b", (double[]){0, 0, 50, 30}, 2);
    write_to(of("/t/b", "cpu.max"), "max 50000");

    metrics_are_true();

    count("many", "--per-cgroup");
    for (int k = 0; k < MANY; k++) {
        char group[32];
        double units[4] = {0};
        units[k % 4] = 2 + k % 4;
        snprintf(group, sizeof group, "/t/many/%d", k);
        row_is(group, units, 1);
    }
    rest_is((cpus + MANY) * RECORD);
    return 0;
}
