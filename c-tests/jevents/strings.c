/* Every string of strings.txt, through all four resolvers, for callers with any size of struct perf_event_attr: the attr
 * is what the table says, exactly the caller's size of it is written, and extra tells the rest. Argument: another table.
 * needs: in-tree */
#include "expect.h"
#include <linux/perf_event.h>
#include <jevents.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define DEVICES "/sys/bus/event_source/devices/"

/* what a row says */
struct row {
    char who[16], string[600], decoded[600], name[64], pmus[256], said[64];
    int error, from_list, line;
    unsigned char attr[144];
};

static void put(struct row *row, size_t offset, const void *value, size_t size)
{
    memcpy(row->attr + offset, value, size);
}

static void put64(struct row *row, size_t offset, uint64_t value)
{
    put(row, offset, &value, sizeof value);
}

static void put32(struct row *row, size_t offset, uint32_t value)
{
    put(row, offset, &value, sizeof value);
}

/* bits of the word behind read_format, by the kernel's interface */
static const struct flag {
    const char *name;
    int bit;
} flags[] = {{"pinned", 2},       {"exclusive", 3},  {"exclude_user", 4},  {"exclude_kernel", 5}, {"exclude_hv", 6},
             {"exclude_idle", 7}, {"freq", 10},      {"exclude_host", 19}, {"exclude_guest", 20}};

static uint64_t flag(const char *name)
{
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(flags[i].name, name) == 0)
            return (uint64_t)1 << flags[i].bit;
    FAIL("no flag %s", name);
}

/* 64-bit fields of the attr, by the kernel's interface */
static const struct field {
    const char *name;
    size_t offset;
} fields[] = {{"config", 8},   {"period", 16},  {"sample_type", 24}, {"config1", 56},
              {"config2", 64}, {"config3", 128}, {"config4", 136}};

static void expect(struct row *row, char *field, uint64_t *bits)
{
    char *value = strchr(field, '=');
    if (value == NULL)
        FAIL("%d: no = in %s", row->line, field);
    *value++ = 0;
    const uint64_t number = strtoull(value, NULL, 0);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(fields[i].name, field) == 0) {
            put64(row, fields[i].offset, number);
            return;
        }
    }
    if (strcmp(field, "type") == 0)
        put32(row, 0, (uint32_t)number);
    else if (strcmp(field, "size") == 0)
        put32(row, 4, (uint32_t)number);
    else if (strcmp(field, "precise") == 0)
        *bits |= number << 15;
    else if (strcmp(field, "decoded") == 0)
        strcpy(row->decoded, value);
    else if (strcmp(field, "name") == 0)
        strcpy(row->name, value);
    else if (strcmp(field, "pmus") == 0)
        strcpy(row->pmus, value);
    else if (strcmp(field, "flags") == 0) {
        char *state;
        for (char *name = strtok_r(value, ",", &state); name != NULL; name = strtok_r(NULL, ",", &state))
            *bits |= flag(name);
    } else
        FAIL("%d: no field %s", row->line, field);
}

/* WHO | STRING | EXPECTED */
static void parse(char *line, struct row *row)
{
    uint64_t bits = 0;
    char *string = strstr(line, " | "), *expected = string ? strstr(string + 3, " | ") : NULL, *state;
    line[strcspn(line, "\n")] = 0;
    if (expected == NULL)
        FAIL("%d: two bars are expected in %s", row->line, line);
    *string = *expected = 0, string += 3, expected += 3;
    CHECK(strlen(line) < sizeof row->who && strlen(string) < sizeof row->string && strlen(expected) < sizeof row->decoded);
    strcpy(row->who, line);
    strcpy(row->string, string);
    strcpy(row->decoded, string);
    put32(row, 0, 4);
    put32(row, 4, 64);
    if (strncmp(expected, "error", 5) == 0) {
        row->error = 1;
        strcpy(row->said, expected[5] ? expected + 6 : "");
        return;
    }
    for (char *field = strtok_r(expected, " ", &state); field != NULL; field = strtok_r(NULL, " ", &state))
        expect(row, field, &bits);
    put64(row, 40, bits);
}

static const char *const resolvers[] = {"resolve_event", "resolve_event_extra", "jevent_name_to_attr",
                                        "jevent_name_to_attr_extra"};

/* the symbols, as callers of any size reach them; 0 is who has no header, and 128 bytes */
#define FOR_EACH_SIZE(DO) \
    DO(0, "") DO(112, "jevents_attr112_") DO(120, "jevents_attr120_") DO(136, "jevents_attr136_") \
        DO(144, "jevents_attr144_") DO(152, "jevents_attr152_") DO(160, "jevents_attr160_")
#define DECLARE(size, prefix) \
    int sized_0_##size(const char *, void *) __asm__(prefix "resolve_event"); \
    int sized_1_##size(const char *, void *, struct jevent_extra *) __asm__(prefix "resolve_event_extra"); \
    int sized_2_##size(const char *, void *) __asm__(prefix "jevent_name_to_attr"); \
    int sized_3_##size(const char *, void *, struct jevent_extra *) __asm__(prefix "jevent_name_to_attr_extra");
FOR_EACH_SIZE(DECLARE)

static const struct {
    size_t size;
    int (*without[2])(const char *, void *), (*with[2])(const char *, void *, struct jevent_extra *);
} symbols[] = {
#define ROW(size, prefix) {size, {sized_0_##size, sized_2_##size}, {sized_1_##size, sized_3_##size}},
    FOR_EACH_SIZE(ROW)};
enum { SIZES = sizeof symbols / sizeof symbols[0] };

static int resolve(int resolver, const char *string, void *attr, size_t of_size, struct jevent_extra *extra)
{
    if (resolver % 2)
        return symbols[of_size].with[resolver / 2](string, attr, extra);
    return symbols[of_size].without[resolver / 2](string, attr);
}

/* the same, as a program calls them */
static int resolve_own(int resolver, const char *string, struct perf_event_attr *attr, struct jevent_extra *extra)
{
    switch (resolver) {
    case 0: return resolve_event(string, attr);
    case 1: return resolve_event_extra(string, attr, extra);
    case 2: return jevent_name_to_attr(string, attr);
    default: return jevent_name_to_attr_extra(string, attr, extra);
    }
}

/* Standard error goes to a file, to be looked at. */
static FILE *heard;
static int loud;

static void hear(void)
{
    CHECK(ftruncate(fileno(heard), 0) == 0 && lseek(fileno(heard), 0, SEEK_SET) == 0);
    CHECK(dup2(fileno(heard), 2) == 2);
}

static const char *what_was_said(void)
{
    static char text[2048];
    CHECK(dup2(loud, 2) == 2);
    const ssize_t length = pread(fileno(heard), text, sizeof text - 1, 0);
    CHECK(length >= 0);
    text[length] = 0;
    return text;
}

#define WRONG(...) (fprintf(stderr, "strings.txt:%d: %s(\"%s\"), attr of %zu bytes: ", row->line, resolvers[resolver], row->string, size), FAIL(__VA_ARGS__))

static void extra_is_right(const struct row *row, int resolver, size_t size, const struct jevent_extra *extra)
{
    char all[600] = "";
    for (size_t i = 0; i < extra->pmus.gl_pathc; i++) {
        const char *path = extra->pmus.gl_pathv[i];
        if (strncmp(path, DEVICES, strlen(DEVICES)) != 0)
            WRONG("PMU %s", path);
        strcat(strcat(all, i ? "," : ""), path + strlen(DEVICES));
    }
    if (strcmp(all, row->pmus) != 0)
        WRONG("PMUs are %s, not %s", all, row->pmus);
    if (extra->pmus.gl_offs != 0 || extra->pmus.gl_pathv[extra->pmus.gl_pathc] != NULL)
        WRONG("the array of PMUs is not as glob's");
    if (extra->multi_pmu != (extra->pmus.gl_pathc > 1))
        WRONG("multi_pmu is %d", extra->multi_pmu);
    if (strcmp(extra->name ? extra->name : "", row->name) != 0)
        WRONG("the name is %s, not %s", extra->name, row->name);
    if (resolver == 3 ? extra->decoded != NULL : strcmp(extra->decoded, row->decoded) != 0)
        WRONG("decoded is %s, not %s", extra->decoded, row->decoded);
}

/* what one resolver wrote into `written` (of which size bytes are the attr) and extra */
static void is_right(const struct row *row, int resolver, size_t size, int result, const unsigned char *written,
                     size_t room, const char *said, struct jevent_extra *extra)
{
    static const struct jevent_extra empty;
    struct row expected = *row;
    const size_t common = size < sizeof row->attr ? size : sizeof row->attr;
    uint32_t needed;
    memcpy(&needed, row->attr + 4, sizeof needed);
    if (strcmp(row->who, "event") == 0 && resolver >= 2) {
        expected.error = 1;
        strcpy(expected.said, "");
    }
    if (!expected.error && needed > size) {
        expected.error = 1;
        snprintf(expected.said, sizeof expected.said, "of %u bytes, and the program has one of %zu", needed, size);
    }
    if (expected.error) {
        memset(expected.attr, 0, sizeof expected.attr);
        put32(&expected, 0, 4);
        put32(&expected, 4, 64);
    }
    if (result != (expected.error ? -1 : 0))
        WRONG("returned %d and said %s", result, said);
    if (expected.said[0] ? strstr(said, expected.said) == NULL : said[0] != 0)
        WRONG("said '%s', not '%s'", said, expected.said);
    for (size_t i = 0; i < room; i++) {
        const unsigned char right = i < common ? expected.attr[i] : i < size ? 0 : 0xaa;
        if (written[i] != right)
            WRONG("byte %zu of the attr is %#x, not %#x", i, written[i], right);
    }
    if (extra == NULL)
        return;
    if (expected.error) {
        if (memcmp(extra, &empty, sizeof empty) != 0)
            WRONG("extra is not empty after a failure");
    } else
        extra_is_right(&expected, resolver, size, extra);
    if (row->line % 2) { /* by the library, or by hand */
        jevent_free_extra(extra);
    } else {
        free(extra->name);
        free(extra->decoded);
        globfree(&extra->pmus);
    }
}

static void in_all_sizes(const struct row *row)
{
    for (int resolver = 0; resolver < 4; resolver++) {
        for (size_t i = 0; i < SIZES; i++) {
            _Alignas(8) unsigned char attr[256];
            struct jevent_extra extra;
            memset(attr, 0xaa, sizeof attr);
            memset(&extra, 0xaa, sizeof extra);
            hear();
            const int result = resolve(resolver, row->string, attr, i, &extra);
            /* 0: compiled with another header than ours, taken for one of 128 bytes */
            is_right(row, resolver, symbols[i].size ? symbols[i].size : 128, result, attr, sizeof attr, what_was_said(),
                     resolver % 2 ? &extra : NULL);
        }
        struct {
            struct perf_event_attr attr;
            unsigned char behind[64];
        } own;
        struct jevent_extra extra;
        memset(&own, 0xaa, sizeof own);
        memset(&extra, 0xaa, sizeof extra);
        hear();
        const int result = resolve_own(resolver, row->string, &own.attr, &extra);
        is_right(row, resolver, sizeof own.attr, result, (unsigned char *)&own, sizeof own, what_was_said(),
                 resolver % 2 ? &extra : NULL);
    }
}

/* NULL wherever it can be given */
static void nothing_crashes(void)
{
    struct perf_event_attr attr;
    for (int resolver = 0; resolver < 4; resolver++) {
        CHECK_EQ(resolve_own(resolver, NULL, &attr, NULL), -1);
        CHECK_EQ(resolve_own(resolver, "cycles", NULL, NULL), -1);
        CHECK_EQ(resolve_own(resolver, "cycles", &attr, NULL), 0);
        CHECK_EQ(attr.config, 0x3c);
    }
    struct jevent_extra extra;
    memset(&extra, 0xaa, sizeof extra);
    CHECK_EQ(resolve_event_extra("cycles", NULL, &extra), -1);
    jevent_free_extra(&extra); /* it is empty */
    jevent_free_extra(NULL);
    CHECK(resolve_event_extra("cycles", &attr, &extra) == 0);
    jevent_copy_extra(NULL, &extra);
    CHECK_EQ(jevents_update_qual(NULL, &attr, "x"), -1);
    CHECK_EQ(jevents_update_qual("u", NULL, "x"), -1);
    CHECK_EQ(jevents_update_qual("u", &attr, NULL), 0);
    CHECK_EQ(jevent_next_pmu(NULL, &attr), -1);
    CHECK_EQ(jevent_next_pmu(&extra, NULL), -1);
    CHECK(jevent_pmu_name(NULL, 0, NULL) == NULL);
    CHECK(format_raw_event(NULL, "x") == NULL);
    CHECK(!jevent_pmu_uncore(NULL));
    CHECK_EQ(jevents_socket_cpus(NULL, NULL), -1);
    CHECK_EQ(walk_perf_events(NULL, NULL), -1);
    jevent_print_attr(NULL, &attr);
    jevent_print_attr(stderr, NULL);
    jevent_free_extra(&extra);
}

/* jevents_update_qual changes what the letters say, in what the attr's size says is there, or nothing. */
static void qualifiers(void)
{
    _Alignas(8) unsigned char bytes[144], before[144];
    struct perf_event_attr *attr = (struct perf_event_attr *)bytes;
    memset(bytes, 0, sizeof bytes);
    memset(bytes + 72, 0xaa, sizeof bytes - 72);
    attr->type = 4, attr->size = 64, attr->config = 1;
    CHECK_EQ(jevents_update_qual("u:config=10:config2=2pp", attr, "x"), 0);
    CHECK(attr->config == 0x11 && attr->exclude_kernel && attr->exclude_hv && attr->exclude_guest && !attr->exclude_user);
    CHECK(attr->config2 == 2 && attr->size == 72 && attr->precise_ip == 2);
    for (size_t i = 72; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], 0xaa);
    memcpy(before, bytes, sizeof bytes);
    CHECK_EQ(jevents_update_qual("kDx", attr, "x"), -1);
    CHECK_EQ(jevents_update_qual("pp", attr, "x"), -1);
    CHECK_EQ(jevents_update_qual("config3=1", attr, "x"), -1); /* its size does not say that there is one */
    CHECK(memcmp(before, bytes, sizeof bytes) == 0);
    attr->size = 144;
    memset(bytes + 128, 0, 16);
    CHECK_EQ(jevents_update_qual("config3=1:config4=2", attr, "x"), 0);
    CHECK(bytes[128] == 1 && bytes[136] == 2 && attr->size == 144);
}

/* format_raw_event, resolve_pmu, jevent_print_attr read no more than the attr's size says. */
static void and_back(void)
{
    _Alignas(8) unsigned char bytes[144];
    struct perf_event_attr *attr = (struct perf_event_attr *)bytes;
    char long_name[2000], text[3000] = "";
    memset(bytes, 0xaa, sizeof bytes);
    memset(bytes, 0, 64);
    attr->type = 20, attr->size = 64, attr->config = 0x135;
    char *event = format_raw_event(attr, NULL);
    CHECK(event && strcmp(event, "uncore_cbox_0/config=0x135/") == 0);
    free(event);
    attr->type = 4, attr->config = 0;
    memset(long_name, 'n', sizeof long_name - 1), long_name[sizeof long_name - 1] = 0;
    event = format_raw_event(attr, long_name);
    sprintf(text, "cpu/config=0,name=%s/", long_name);
    CHECK(event && strcmp(event, text) == 0);
    free(event);
    attr->size = 72;
    attr->config1 = 0x10, attr->config2 = 0x20;
    event = format_raw_event(attr, "n");
    CHECK(event && strcmp(event, "cpu/config=0,config1=0x10,config2=0x20,name=n/") == 0);
    free(event);
    attr->type = 99;
    CHECK(format_raw_event(attr, NULL) == NULL);

    char *pmu = resolve_pmu(9);
    CHECK(pmu && strcmp(pmu, "msr") == 0);
    free(pmu);
    CHECK(resolve_pmu(99) == NULL && resolve_pmu(-1) == NULL);

    FILE *file = tmpfile();
    CHECK(file != NULL);
    attr->type = 4, attr->exclude_kernel = 1, attr->freq = 1, attr->sample_freq = 99;
    jevent_print_attr(file, attr);
    rewind(file);
    memset(text, 0, sizeof text);
    CHECK(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    if (strcmp(text, "type: 4\nconfig: 0\nread_format: 0\nsample_period/freq: 99\nconfig1: 10\nconfig2: 20\n"
                     "flags: exclude_kernel freq \n") != 0)
        FAIL("jevent_print_attr wrote %s", text);

    CHECK(jevent_pmu_uncore("cbox/event=1/") && jevent_pmu_uncore("power/energy-pkg/") && jevent_pmu_uncore("iio/x"));
    CHECK(!jevent_pmu_uncore("cha/event=1/") && !jevent_pmu_uncore("cpu/x/") && !jevent_pmu_uncore("power"));

    int sockets = -7, *cpus = NULL;
    if (jevents_socket_cpus(&sockets, &cpus) == 0) {
        CHECK(sockets > 0);
        for (int i = 0; i < sockets; i++)
            CHECK(cpus[i] >= 0);
        free(cpus);
    } else
        CHECK(sockets == -7 && cpus == NULL);
}

struct walk {
    char last[300];
    int seen, stop_at, power;
};

static int walked(void *data, char *name, char *event, char *desc)
{
    struct walk *walk = data;
    CHECK(desc != NULL && desc[0] == 0);
    CHECK(strchr(name, '.') == NULL && strcmp(walk->last, name) < 0);
    strcpy(walk->last, name);
    walk->power += strcmp(name, "power/energy-pkg/") == 0 && strcmp(event, "power/event=0x02/") == 0;
    name[0] = event[0] = 0; /* they are ours to write */
    return ++walk->seen == walk->stop_at ? 42 : 0;
}

static void walks(void)
{
    struct walk all = {"", 0, 0, 0}, some = {"", 0, 3, 0};
    CHECK_EQ(walk_perf_events(walked, &all), 0);
    CHECK_EQ(all.seen, 11); /* 6 of cpu, and of imc, msr (2), power, the long one */
    CHECK_EQ(all.power, 1);
    CHECK_EQ(walk_perf_events(walked, &some), 42);
    CHECK_EQ(some.seen, 3);
}

int main(int argc, char **argv)
{
    static char line[2000];
    int rows = 0, number = 0;
    if (access(DEVICES "uncore_cbox_10", F_OK) != 0)
        SKIP("to be run in the tree: c-tests/jevents/in-tree %s", argv[0]);
    FILE *table = fopen(argc > 1 ? argv[1] : "c-tests/jevents/strings.txt", "r");
    if (table == NULL)
        FAIL("no table of strings");
    heard = tmpfile(), loud = dup(2);
    CHECK(heard != NULL && loud >= 0);
    while (fgets(line, sizeof line, table)) {
        number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        struct row row;
        memset(&row, 0, sizeof row);
        row.line = number;
        parse(line, &row);
        in_all_sizes(&row);
        rows++;
    }
    CHECK(rows >= 100);
    fclose(table);
    nothing_crashes();
    qualifiers();
    and_back();
    walks();
    printf("%d strings\n", rows);
    return 0;
}
