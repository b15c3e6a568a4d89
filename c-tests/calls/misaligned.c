/* A pointer that is not aligned as its structure is, or to the inside of a handle, is an error and never a crash, and
 * nothing is written then. */
#include "calls.h"

int main(void)
{
    td_t *td = simulated(0);
    struct pointees to;
    struct pointers pointers = good_pointers(td, &to);
    static unsigned char room[8192] __attribute__((aligned(64)));
    td_must(td_mark_read_slowly(td, &to.mark));
    td_must(td_sum_add(&to.sum, &to.earlier, &to.later));
    td_must(td_sum_begin(td, &to.sum));
    for (int i = 0; i < CALLS_IN_ALL; i++) {
        for (int k = 0; k < MOST_ARGUMENTS; k++) {
            const int pointer = CALLS[i].argument[k].pointer;
            for (size_t by = 1; pointer >= 0 && by < (pointer == HANDLE ? 4096 : pointer == OPTIONS || pointer == COUNT ? 4 : 8); by++) {
                struct pointers spoiled = pointers;
                struct pointees before = to;
                if (pointer == HANDLE) {
                    spoiled.at[HANDLE] = (char *)td + by;
                } else {
                    memset(room, 0x55, sizeof room);
                    spoiled.at[pointer] = memcpy(room + by, pointers.at[pointer], size_of_pointee(pointer));
                }
                const int code = CALLS[i].call(&spoiled);
                if (code != -EINVAL || !last_error_with(pointer == HANDLE ? "no handle" : "misaligned"))
                    FAIL("%s, argument %d, %zu: %d (%s)", CALLS[i].name, k, by, code, last_error_with(""));
                if (memcmp(&before, &to, sizeof to) != 0)
                    FAIL("%s, argument %d, %zu: wrote something", CALLS[i].name, k, by);
                if (pointer != HANDLE && memcmp(room + by, pointers.at[pointer], size_of_pointee(pointer)) != 0)
                    FAIL("%s, argument %d, %zu: wrote there", CALLS[i].name, k, by);
            }
        }
    }
    for (size_t by = 1; by < 4096; by++)
        td_close((td_t *)((char *)td + by)); /* it says nothing, and ends nothing */
    td_must(td_read(td, &to.sample));
    td_close(td);
    return 0;
}
