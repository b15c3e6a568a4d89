/* Regions of random length and of one or several mixes, after a random history: other mixes, warped stretches of up to 1e13 slots,
 * sleeps, resets, competing handles that come and go. Whatever it was, the truth is within `error`, and totals only grow. */
#include "pmu.h"
#include "levels.h"

enum { TURNS = 1500 };
static uint64_t seed;

static uint64_t up_to(uint64_t most) { return next_random(&seed) % (most + 1); }

static void nap(void)
{
    const struct timespec moment = {0, 1000 * (long)(1 + up_to(200))};
    nanosleep(&moment, NULL);
}

/* 10^3 to 10^6 instructions of work, each order of magnitude as likely; now and then interrupted */
static uint64_t some_work(void)
{
    const uint64_t instructions = (uint64_t)pow(10, 3 + 3 * (double)up_to(1000) / 1000);
    const unsigned naps = up_to(3) ? 0 : (unsigned)up_to(6);
    for (unsigned i = 0; i <= naps; i++) {
        work(instructions / (naps + 1));
        if (i < naps)
            nap();
    }
    return instructions;
}

/* what the calls around the work execute in a region, at the most, in instructions */
enum { OTHERS = 4000 };

static void holds(int count, const double *share, const double *truth, double error)
{
    for (int k = 0; k < count; k++)
        CHECK_NEAR(share[k], truth[k], error);
}

int main(int argc, char **argv)
{
    static const uint32_t flags[] = {0, 0, 0, TD_FLAG_NO_RDPMC};
    td_t *competing = NULL;
    int telling = 0, missed = 0, opened = 0;
    seed = seed_of(argc, argv);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int handle = 0; handle < 6; handle++) {
        const struct td_options options = options_of(flags[up_to(3)], 0);
        td_t *td = measured(&options);
        struct td_sample last, before, after;
        needs_known_mix();
        const struct td_info info = info_of(td);
        td_must(td_read(td, &last));
        for (int turn = 0; turn < TURNS / 6; turn++) {
            /* history */
            switch (up_to(7)) {
            case 0: td_must(td_reset(td)); td_must(td_read(td, &last)); break;
            case 1: mix_at(random_mix(&seed), (unsigned)up_to(5)); work((long)up_to(2000)); break;
            case 2: mix_is(random_mix(&seed)); some_work(); break;
            case 3: nap(); break;
            case 4:
                if (competing != NULL) {
                    td_close(competing);
                    competing = NULL;
                } else if (!up_to(7)) {
                    competing = measured(NULL);
                    opened++;
                }
                break;
            default: break;
            }
            /* region */
            double l1_truth[4] = {0}, l2_truth[8] = {0}, instructions = 0;
            struct vm_mix mix = random_mix(&seed);
            mix_is(mix);
            td_must(td_read(td, &before));
            for (int phase = up_to(1) ? 1 : 4; phase > 0; phase--) {
                const double part = (double)some_work();
                const struct truth truth = truth_of(mix);
                for (int k = 0; k < 8; k++) {
                    l1_truth[k % 4] += k < 4 ? part * truth.l1[k] : 0;
                    l2_truth[k] += part * truth.l2[k];
                }
                instructions += part;
                if (phase > 1)
                    mix_is(mix = random_mix(&seed));
            }
            td_must(td_read(td, &after));
            for (int k = 0; k < 8; k++) {
                l1_truth[k % 4] /= k < 4 ? instructions : 1;
                l2_truth[k] /= instructions;
            }
            const double others = OTHERS / instructions;
            CHECK(before.slots >= last.slots && after.slots >= before.slots);
            CHECK(after.time_running_ns >= before.time_running_ns && before.time_running_ns >= last.time_running_ns);
            last = after;
            struct td_l1 l1;
            struct td_l2 l2;
            int code = td_decode_l1(&before, &after, &l1);
            if (code == TD_ENOTCOUNTING) { /* a competing handle counted, all through but for what the kernel itself ran */
                CHECK(opened > 0);
                missed++;
                continue;
            }
            td_must(code);
            double share[8];
            l1_array(&l1, share);
            holds(4, share, l1_truth, l1.error + others);
            telling += l1.error < 0.02;
            CHECK(opened > 0 || has_all_levels(&before, &after)); /* (while a competing handle counts, level 1 alone may be counted) */
            if (has_l2(&info) && has_level_2(&before, &after)) {
                td_must(td_decode_l2(&before, &after, &l2));
                l2_array(&l2, share);
                holds(8, share, l2_truth, l2.error + others);
            }
        }
        td_close(td);
    }
    td_close(competing);
    printf("%d of %d regions within 2 points\n", telling, TURNS);
    CHECK(missed < TURNS / 2);
    CHECK(telling > TURNS / 20); /* a bound of 1 would be right, too, and useless */
    return 0;
}
