/* `topdown record` tells which lines of a function have how much of the time, with their text: the truth is in the interval of each, and the
 * hottest one is it, in the text and in the page; of an inlined function the line is below that function.
 * needs: counters, not-hybrid */
#include "lib/stat.h"
#include "lib/functions.h"
#include "lib/profile.h"
#include "coverage.h"

/* What `topdown record` with these arguments says on standard error, or writes into a file. */
static char *told(const char *file, char *const *arguments)
{
    char *words[16] = {beside("../release/topdown"), "record"};
    int count = 2;
    while (*arguments)
        words[count++] = *arguments++;
    CHECK(count < 16);
    CHECK_EQ(run_alone(words), 0);
    return text_in(file);
}

/* Lines of the text, "48.1 ± 4.2 ... lines.c:20  SPEND(30 * part); / * 30 % of the time * /", are true, and in this order. */
static void lines_are_true(const char *text, const int *parts, const char *function)
{
    const char *at = strstr(text, function);
    CHECK(at != NULL);
    for (; *parts; parts++) {
        double value, error;
        int part = 0;
        at = strchr(at, '\n');
        CHECK(at != NULL);
        CHECK_EQ(sscanf(++at, "%lf ±%lf", &value, &error), 2);
        const char *const name = strstr(at, "lines.c:"), *const comment = name ? strstr(name, "/*") : NULL;
        CHECK(comment != NULL && comment < strchr(at, '\n') && sscanf(comment, "/* %d %% of the time */", &part) == 1);
        fprintf(stderr, "%.1f ± %.1f %%, in truth %d: %.*s\n", value, error, part, (int)(strchr(at, '\n') - name), name);
        CHECK_EQ(part, *parts);
        /* (the loop and the call have a thousandth) */
        lies_within(function, value, value - error - 0.1, value + error + 0.1, part);
        CHECK(error < 10);
    }
}

int main(void)
{
    stat_begins();
    kernel_never_lowers(); /* (others before it may have made the kernel do so) */
    char *const recording = in_scratch("x.recording"), *const source = beside("../../c-tests");
    CHECK_EQ(run_alone((char *[]){beside("../release/topdown"), "record", "-F2000", "--budget=50", "-o", recording, beside("lib/lines"),
                                  "30000", NULL}), 0);
    char *text = told("r.txt", (char *[]){"--lines", "--source", source, "--from", recording, "-o", in_scratch("r.txt"), NULL});
    lines_are_true(text, (int[]){60, 30, 0}, " spends (lines)\n");
    lines_are_true(text, (int[]){10, 0}, " inlined (lines)\n");
    text = told("r.html", (char *[]){"--source", source, "--from", recording, "-o", in_scratch("r.html"), NULL});
    for (const char *row = text; (row = strstr(row, "<tr class=\"hottest\">")) != NULL; row++) {
        const char *const end = strstr(row, "</tr>"), *const known = strstr(row, "% of the time */");
        /* (lines of main and of the C library may have some of the time, too) */
        CHECK(known == NULL || known > end || strncmp(known - 3, "30", 2) != 0);
    }
    CHECK(strstr(text, "60 % of the time */</td>") && strstr(text, "10 % of the time */</td>"));
    CHECK(strstr(text, "__attribute__((noinline, noclone)) static void spends(uint64_t part)")); /* (beside the others) */
    return 0;
}
