/* Samples, marks and sums of one handle do not go with those of another, whichever process opened it: children of one parent,
 * parent and child, two executions of one program, threads, a handle in the place of a closed one, another copy of the library;
 * also where the kernel gives no random numbers. All of them come back from a file; those of one handle still decode.
 * On real counters if there are any.
 * needs: nothing or counters */
#include "check.h"
#include "internals.h"
#include <topdown_inline.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

struct record { /* of one handle */
    struct td_sample first, second, after_reset;
    struct td_mark mark;
    struct td_sum sum; /* in an execution that has begun */
};
enum { CHILDREN = 6, MOST = 64 };
static int file;

static td_t *any_handle(void)
{
    td_t *td = NULL;
    return td_open(&td, NULL) == 0 ? td : simulated(0);
}

static void add_records_of(td_t *td)
{
    struct record record;
    memset(&record, 0, sizeof record);
    td_must(td_read(td, &record.first));
    work(100000);
    td_must(td_read(td, &record.second));
    td_must(td_reset(td));
    work(100000);
    td_must(td_mark_read_slowly(td, &record.mark));
    td_must(td_read(td, &record.after_reset));
    td_must(td_sum_begin(td, &record.sum));
    CHECK_EQ(write(file, &record, sizeof record), sizeof record);
}

static void add_record(void)
{
    td_t *td = any_handle();
    add_records_of(td);
    td_close(td);
}

static void *thread(void *unused)
{
    add_record();
    return unused;
}

static void in_children(char *program)
{
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0 && program != NULL) {
            char number[16];
            snprintf(number, sizeof number, "%d", file);
            execl(program, program, number, (char *)NULL);
            _exit(1);
        }
        if (children[i] == 0) {
            add_record();
            _exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++)
        child_is_well(children[i]);
}

/* The library's file under another name is another library. */
static void in_another_copy(void)
{
    Dl_info here;
    char command[4096], path[] = "/tmp/libtopdown-copy-XXXXXX";
    struct record record;
    struct td_options options = {.size = sizeof options, .flags = TD_FLAG_SIMULATE};
    td_t *td = NULL;
    const int unused = mkstemp(path);
    CHECK(unused >= 0);
    close(unused);
    CHECK(dladdr((void *)(uintptr_t)td_open, &here) != 0);
    snprintf(command, sizeof command, "cp '%s' '%s'", here.dli_fname, path);
    CHECK_EQ(system(command), 0);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    if (library == NULL) /* the program is linked with the static library */
        return;
#define COPYS(function) ((__typeof__(&function))(uintptr_t)dlsym(library, #function))
    CHECK((uintptr_t)COPYS(td_open) != (uintptr_t)td_open);
    memset(&record, 0, sizeof record);
    CHECK_EQ(COPYS(td_open)(&td, &options), 0);
    CHECK_EQ(COPYS(td_read)(td, &record.first), 0);
    work(100000);
    CHECK_EQ(COPYS(td_read)(td, &record.second), 0);
    CHECK_EQ(COPYS(td_reset)(td), 0);
    work(100000);
    CHECK_EQ(COPYS(td_mark_read_slowly)(td, &record.mark), 0);
    CHECK_EQ(COPYS(td_read)(td, &record.after_reset), 0);
    CHECK_EQ(COPYS(td_sum_begin)(td, &record.sum), 0);
    COPYS(td_close)(td);
    CHECK_EQ(write(file, &record, sizeof record), sizeof record);
}

static int both(const struct td_sample *from, const struct td_sample *to)
{
    struct td_l1 l1;
    struct td_l2 l2;
    struct td_sum sum, untouched;
    memset(&sum, 0, sizeof sum);
    untouched = sum;
    const int code = td_decode_l1(from, to, &l1);
    if (code != 0 || own(to)->base.level == 2)
        CHECK_EQ(td_decode_l2(from, to, &l2), code);
    CHECK_EQ(td_sum_add(&sum, from, to), code);
    CHECK_EQ(memcmp(&sum, &untouched, sizeof sum) == 0, code != 0);
    return code;
}

static void refused(const struct td_sample *from, const struct td_sample *to)
{
    CHECK_EQ(both(from, to), -EINVAL);
    CHECK(last_error_with("different handles"));
}

/* what is in the file: each record is of another handle */
static void each_goes_with_itself_alone(int expected)
{
    static struct record all[MOST];
    int count = 0;
    CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
    while (count < MOST && read(file, &all[count], sizeof all[count]) == sizeof all[count])
        count++;
    CHECK_EQ(count, expected);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            if (i == j) {
                CHECK_EQ(both(&all[i].first, &all[i].second), 0);
                CHECK_EQ(both(&all[i].first, &all[i].after_reset), TD_ESTALE);
                continue;
            }
            refused(&all[i].first, &all[j].second);
            refused(&all[i].first, &all[j].after_reset);
            refused(&all[i].after_reset, &all[j].after_reset);
        }
    /* nor with a handle that is open here */
    td_t *td = any_handle();
    struct td_sample sample;
    work(100000);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(td_mark_sample(td, &all[i].mark, &sample), TD_ESTALE);
        CHECK_EQ(td_sum_end(td, &all[i].sum), -EINVAL);
        td_must(td_read(td, &sample));
        refused(&all[i].first, &sample);
    }
    td_close(td);
}

static void without_random_numbers(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    uint64_t word;
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    CHECK_EQ(syscall(SYS_getrandom, &word, sizeof word, 0), -1);
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/topdown-samples-XXXXXX";
    if (argc == 2) { /* executed by the parent */
        file = atoi(argv[1]);
        add_record();
        return 0;
    }
    file = mkstemp(path);
    CHECK(file >= 0);
    unlink(path);
    CHECK_EQ(fcntl(file, F_SETFL, O_APPEND), 0);
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(ftruncate(file, 0), 0);
        in_children(NULL);
        in_children(argv[0]);
        td_t *td = any_handle();
        in_children(NULL);
        add_records_of(td);
        td_close(td);
        add_record(); /* in its place */
        for (int i = 0; i < 2; i++)
            join_thread(start_thread(thread, NULL));
        in_another_copy();
        each_goes_with_itself_alone(3 * CHILDREN + 5);
        if (round == 0)
            without_random_numbers();
    }
    return 0;
}
