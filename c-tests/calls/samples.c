/* Samples that do not go together are refused: of two periods, of two handles, in the wrong order, not samples. */
#include "check.h"

static int both(const struct td_sample *from, const struct td_sample *to)
{
    struct td_l1 l1;
    struct td_l2 l2;
    memset(&l1, 0x55, sizeof l1);
    memset(&l2, 0x55, sizeof l2);
    int code = td_decode_l1(from, to, &l1);
    CHECK_EQ(td_decode_l2(from, to, &l2), code);
    if (code != 0) {
        CHECK_EQ(l1.size, 0x55555555); /* outputs are written on success only */
        CHECK_EQ(l2.size, 0x55555555);
    }
    return code;
}

int main(void)
{
    td_t *td = simulated(0), *other = simulated(0);
    struct td_sample first, second, foreign, later, garbage;
    td_must(td_read(td, &first));
    work(1000);
    td_must(td_read(td, &second));
    td_must(td_read(other, &foreign));
    CHECK_EQ(both(&first, &second), 0);
    CHECK_EQ(both(&second, &first), -EINVAL);
    CHECK(last_error_with("order"));
    CHECK_EQ(both(&first, &first), TD_ENOTCOUNTING);
    CHECK_EQ(both(&first, &foreign), -EINVAL);
    CHECK(last_error_with("different handles"));
    CHECK_EQ(both(&foreign, &second), -EINVAL);

    td_must(td_reset(td));
    work(1000);
    td_must(td_read(td, &later));
    CHECK_EQ(both(&second, &later), TD_ESTALE);
    CHECK(last_error_with("td_reset"));
    CHECK_EQ(both(&later, &second), TD_ESTALE);
    CHECK_EQ(both(NULL, &later), 0);
    CHECK_EQ(both(&first, &second), 0); /* the old period's samples still go with each other */

    for (int byte = 0; byte < 256; byte++) {
        memset(&garbage, byte, sizeof garbage);
        CHECK_EQ(both(NULL, &garbage), -EINVAL);
        CHECK_EQ(both(&garbage, &later), -EINVAL);
        CHECK_EQ(both(&later, &garbage), -EINVAL);
    }
    /* a handle opened in the place of a closed one is another handle */
    td_close(other);
    other = simulated(0);
    work(1000);
    td_must(td_read(other, &second));
    CHECK_EQ(both(&foreign, &second), -EINVAL);
    td_close(other);
    td_close(td);
    CHECK_EQ(both(NULL, &later), 0); /* samples outlive their handle */
    return 0;
}
