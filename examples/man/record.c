/* Which function of this program wastes slots? */
#include <stdio.h>
#include <topdown_record.h>

static __attribute__((noinline)) double sum(int terms)
{
    double sum = 0;
    for (int i = 1; i <= terms; i++)
        sum += 1.0 / i;
    return sum;
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "-"; /* standard output */
    char why[1000];

    if (td_record_start(NULL)) {
        td_record_last_error(why, sizeof why);
        printf("not recorded: %s\n", why);
        return 0;
    }
    printf("%f\n", sum(100000000));
    if (td_record_stop(file)) {
        td_record_last_error(why, sizeof why);
        printf("no profile: %s\n", why);
    }
    return 0;
}
