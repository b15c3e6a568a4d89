/* Opens the counters, or says what is in the way. */
#include <stdio.h>
#include <topdown.h>

int main(void)
{
    td_t *td;
    char why[1000];
    struct td_options options = { .size = sizeof options, .level = 1 };

    int code = td_open(&td, &options);
    if (code) {
        td_last_error(why, sizeof why);
        printf("%s: %s\n", td_strerror(code), why);
        puts("SIMULATED:");           /* numbers are made up */
        options.flags = TD_FLAG_SIMULATE;
        if (td_open(&td, &options))
            return 1;
    }
    printf("libtopdown %s has opened counters\n", td_version());
    td_close(td);
    return 0;
}
