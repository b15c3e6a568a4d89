/* Which event files are loaded, when, and what becomes of the list: read_events, walk_events, rmap_event. */
#include "event_files.h"

#define ONE(name) "[ { \"EventName\": \"" name "\", \"EventCode\": \"0x3c\", \"UMask\": \"0x2\", \"BriefDescription\": \"" name "\" } ]"
#define LINE(name) name " cpu/umask=0x2,event=0x3c/ " name "\n"

static void cache_is(const char *name)
{
    CHECK_EQ(setenv("JEVENTS_CACHEDIR", event_path(name), 1), 0);
}

static void nothing_is_set(void)
{
    struct noted noted = {.text = ""};
    setenv("JEVENTS_CACHEDIR", "", 1); /* as if it were not */
    CHECK_EQ(walk_events(note_walked, &noted), -1);
    CHECK_EQ(read_events(NULL), -ENOMEM);
    LIST_IS(""); /* it was asked for, and that decides */
}

static void no_file_is_there(void)
{
    struct noted noted = {.text = ""};
    char *name = NULL, *desc = NULL;
    cache_is("nowhere");
    CHECK_EQ(json_events(NULL, note_read, &noted), -EIO);
    CHECK_EQ(walk_events(note_walked, &noted), -1);
    cpu_file("nowhere", "-core", ONE("late"));
    CHECK_EQ(walk_events(note_walked, &noted), -1); /* the first use decides */
    CHECK_EQ(rmap_event(0x23c, &name, &desc), -1);
    CHECK(name == NULL && desc == NULL);
    CHECK_EQ(noted.count, 0);
    CHECK_EQ(read_events(NULL), 0);
    LIST_IS(LINE("late"));
}

static void explicit_failure_decides(void)
{
    cache_is("cache");
    CHECK_EQ(read_events(event_path("none")), -EIO);
    LIST_IS(""); /* not the default */
    CHECK_EQ(rmap_event(0x23c, NULL, NULL), -1);
}

static void first_use_loads(void)
{
    struct noted noted = {.text = "", .stop_after = 2, .value = 5};
    char *name = NULL, *desc = NULL, *again = NULL;
    cache_is("cache");
    LIST_IS("atom cpu_atom/event=0x1/ No description.\n"
            "both cpu/event=0x3/ Core\n"
            "both imc/umask=0x3,event=0x4/ Uncore.  Unit: imc\n"
            "core cpu/umask=0x3,event=0x4/ Core\n"
            "offcore cpu/umask=0x2,event=0x3c/ offcore\n"
            "test cha/event=0x1/ Unit: cha\n");
    CHECK_EQ(walk_events(note_walked, &noted), 5);
    CHECK_EQ(noted.count, 2);
    CHECK_EQ(walk_events(NULL, NULL), -1);

    CHECK_EQ(rmap_event(0x304, &name, &desc), 0); /* of imc, too */
    CHECK(strcmp(name, "core") == 0 && strcmp(desc, "Core") == 0);
    CHECK_EQ(rmap_event(0xffff0304u, NULL, NULL), 0);
    CHECK_EQ(rmap_event(0x304, &again, NULL), 0);
    CHECK(again == name); /* no memory for each call */
    CHECK_EQ(rmap_event(0x305, &name, &desc), -1);
    CHECK(strcmp(name, "core") == 0); /* as it was */

    /* A second read replaces the list; texts stay good. */
    CHECK_EQ(read_events(event_path("other")), 0);
    LIST_IS(LINE("other"));
    CHECK(strcmp(name, "core") == 0 && strcmp(desc, "Core") == 0);
    CHECK_EQ(rmap_event(0x304, NULL, NULL), -1);
    CHECK_EQ(rmap_event(0x23c, &name, NULL), 0);
    CHECK(strcmp(name, "other") == 0);
    CHECK_EQ(read_events(NULL), 0);
    CHECK_EQ(rmap_event(0x304, NULL, NULL), 0);
    CHECK_EQ(read_events(event_path("none")), -EIO);
    LIST_IS("");
}

static int reads_within(void *data, char *name, char *event, char *desc)
{
    int *count = data;
    CHECK_EQ(read_events(event_path("other")), 0);
    LIST_IS(LINE("other"));
    CHECK(strlen(name) > 0 && strlen(event) > 0 && strlen(desc) > 0);
    ++*count;
    return 0;
}

static void callbacks_may_read(void)
{
    int count = 0;
    cache_is("cache");
    CHECK_EQ(walk_events(reads_within, &count), 0);
    CHECK_EQ(count, 6); /* of the list that it began with */
}

static void broken_core_fails(void)
{
    cache_is("broken");
    CHECK_EQ(read_events(NULL), -EIO);
}

static void broken_uncore_does_not(void)
{
    cache_is("half");
    CHECK_EQ(read_events(NULL), 0);
    LIST_IS(LINE("half"));
}

static void stepping_wins(void)
{
    cache_is("stepping");
    setenv("EVENTMAP", "", 1);
    LIST_IS(LINE("mine"));
}

static void map_is_a_file(void)
{
    cache_is("cache");
    setenv("EVENTMAP", event_path("other"), 1);
    LIST_IS(LINE("other")); /* once */
}

static void map_is_a_cpu(void)
{
    cache_is("stepping");
    setenv("EVENTMAP", "Some-1-2", 1);
    LIST_IS(LINE("some")); /* though there is a file for this CPU and its stepping */
    setenv("EVENTMAP", "Some-1-3", 1);
    CHECK_EQ(read_events(NULL), -EIO);
}

static void directories_follow_each_other(void)
{
    cache_is("nowhere");
    setenv("HOME", event_path("home"), 1);
    setenv("CACHEDIR", event_path("down"), 1);
    setenv("SUDO_USER", "no such user", 1);
    setenv("XDG_CACHE_HOME", "", 1);
    LIST_IS(LINE("down"));
    cpu_file("home/.cache", "-core", ONE("home"));
    CHECK_EQ(read_events(NULL), 0);
    LIST_IS(LINE("home"));
    setenv("XDG_CACHE_HOME", event_path("stepping"), 1);
    CHECK_EQ(read_events(NULL), 0);
    LIST_IS(LINE("mine"));
    cache_is("half");
    CHECK_EQ(read_events(NULL), 0);
    LIST_IS(LINE("half"));
}

static void cpus_have_names(void)
{
    char *core = get_cpu_str(), *stepping = NULL, *plain = get_cpu_str_type("-core", NULL);
    char *other = get_cpu_str_type("-x", &stepping);
    unsigned family, model, step;
    char vendor[16], type[16];
    CHECK(core && stepping && plain && other);
    CHECK(strcmp(core, plain) == 0);
    CHECK_EQ(sscanf(stepping, "%12[^-]-%u-%X-%X-%15s", vendor, &family, &model, &step, type), 5);
    CHECK(strcmp(type, "x") == 0);
    char expected[64];
    snprintf(expected, sizeof expected, "%s-%u-%X-core", vendor, family, model);
    CHECK(strcmp(core, expected) == 0);
    snprintf(expected, sizeof expected, "%s-%u-%X-x", vendor, family, model);
    CHECK(strcmp(other, expected) == 0);
    CHECK(get_cpu_str_type(NULL, NULL) == NULL);
    free(core), free(stepping), free(plain), free(other);
}

int main(void)
{
    char *id = NULL, *step = NULL, type[64];
    event_files_begin();
    event_file("other", ONE("other"));
    cpu_file("cache", "-core",
             "{ \"Events\": [ { \"EventName\": \"core\", \"EventCode\": \"0x4\", \"UMask\": \"0x3\", \"BriefDescription\": \"Core\" },"
             "{ \"EventName\": \"both\", \"EventCode\": \"0x3\", \"BriefDescription\": \"Core\" } ] }");
    cpu_file("cache", "-uncore",
             "[ { \"EventName\": \"Both\", \"Unit\": \"iMC\", \"EventCode\": \"0x4\", \"UMask\": \"0x3\", \"BriefDescription\": \"Uncore\" } ]");
    cpu_file("cache", "-uncoreexperimental", "[ { \"EventName\": \"test\", \"Unit\": \"CHA\", \"EventCode\": 1 } ]");
    cpu_file("cache", "-offcore", ONE("offcore"));
    cpu_file("cache", "-hybridcore-Atom", "[ { \"EventName\": \"atom\", \"EventCode\": 1 } ]");
    cpu_file("broken", "-core", "[ {");
    cpu_file("broken", "-uncore", ONE("uncore"));
    cpu_file("half", "-core", ONE("half"));
    cpu_file("half", "-uncore", "[ {");
    id = get_cpu_str_type("", &step);
    CHECK(id && step);
    snprintf(type, sizeof type, "%s-core", step + strlen(id)); /* -STEPPING-core */
    free(id), free(step);
    cpu_file("stepping", "-core", ONE("model"));
    cpu_file("stepping", type, ONE("mine"));
    event_file("stepping/pmu-events/Some-1-2-core.json", ONE("some"));
    id = get_cpu_str();
    snprintf(type, sizeof type, "down/%s.json", id); /* there, without pmu-events */
    event_file(type, ONE("down"));
    free(id);

    FRESH(nothing_is_set);
    FRESH(directories_follow_each_other);
    FRESH(no_file_is_there);
    FRESH(explicit_failure_decides);
    FRESH(first_use_loads);
    FRESH(callbacks_may_read);
    FRESH(broken_core_fails);
    FRESH(broken_uncore_does_not);
    FRESH(stepping_wins);
    FRESH(map_is_a_file);
    FRESH(map_is_a_cpu);
    FRESH(cpus_have_names);
    return 0;
}
