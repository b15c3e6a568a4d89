/* event_files.h: a directory of event files of a test's own, and no other that the library would look at. */
#ifndef EVENT_FILES_H
#define EVENT_FILES_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <ftw.h>
#include <jevents.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "expect.h"

static char event_files[64]; /* the directory */

static inline int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static inline void event_files_end(void)
{
    nftw(event_files, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void event_files_begin(void)
{
    strcpy(event_files, "/tmp/event-files-XXXXXX");
    CHECK(mkdtemp(event_files) != NULL);
    atexit(event_files_end);
    unsetenv("EVENTMAP"), unsetenv("JEVENTS_CACHEDIR"), unsetenv("XDG_CACHE_HOME");
    unsetenv("SUDO_USER"), unsetenv("HOME"), unsetenv("CACHEDIR");
}

/* The path of a file there, in one of four buffers in turn. */
static inline const char *event_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", event_files, name);
    return path;
}

/* Makes it, and the directories that it is in. */
static inline const char *event_file(const char *name, const char *text)
{
    char *path = (char *)event_path(name);
    for (char *slash = path + strlen(event_files) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = 0;
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
    return path;
}

/* The same, in pmu-events of a cache directory, for this CPU: type "-core" or "-4-core". */
static inline const char *cpu_file(const char *cache, const char *type, const char *text)
{
    char name[256];
    char *id = get_cpu_str_type((char *)type, NULL);
    CHECK(id != NULL);
    snprintf(name, sizeof name, "%s/pmu-events/%s.json", cache, id);
    free(id);
    return event_file(name, text);
}

/* A test in a process of its own: one where nothing was loaded. */
#define FRESH(test) in_child(__FILE__, __LINE__, test)
static inline void in_child(const char *file, int line, void (*test)(void))
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        test();
        _exit(0); /* the directory stays */
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "%s:%d: exit status %#x\n", file, line, status);
        exit(1);
    }
}

/* Events are noted one a line, as NAME EVENT DESCRIPTION [PMU]. */
struct noted {
    char text[4096];
    int count, stop_after, value;
};

static inline int note(struct noted *noted, const char *name, const char *event, const char *desc, const char *pmu)
{
    const size_t length = strlen(noted->text);
    snprintf(noted->text + length, sizeof noted->text - length, "%s %s %s%s%s\n", name, event, desc, *pmu ? " " : "", pmu);
    return ++noted->count == noted->stop_after ? noted->value : 0;
}

static inline int note_walked(void *noted, char *name, char *event, char *desc)
{
    const int value = note(noted, name, event, desc, "");
    memset(name, 'x', strlen(name)), memset(event, 'x', strlen(event)), memset(desc, 'x', strlen(desc)); /* allowed */
    return value;
}

static inline int note_read(void *noted, char *name, char *event, char *desc, char *pmu)
{
    const int value = note(noted, name, event, desc, pmu);
    memset(name, 'x', strlen(name)), memset(event, 'x', strlen(event)), memset(desc, 'x', strlen(desc));
    return value;
}

#define NOTED_IS(noted, expected) noted_is(__FILE__, __LINE__, (noted).text, expected)
static inline void noted_is(const char *file, int line, const char *text, const char *expected)
{
    if (strcmp(text, expected) != 0) {
        fprintf(stderr, "%s:%d: found:\n%snot:\n%s", file, line, text, expected);
        exit(1);
    }
}

/* The list is this. */
#define LIST_IS(expected) list_is(__FILE__, __LINE__, expected)
static inline void list_is(const char *file, int line, const char *expected)
{
    struct noted noted = {.text = ""};
    const int result = walk_events(note_walked, &noted);
    if (result != 0) {
        fprintf(stderr, "%s:%d: walk_events: %d\n", file, line, result);
        exit(1);
    }
    noted_is(file, line, noted.text, expected);
}
#endif
