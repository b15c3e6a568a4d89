/* topdown_record.h: a program records itself, and a file tells which of its functions waste pipeline slots: `topdown record` from
 * inside, for a part of a program's run, or programs that nobody else can start.
 *
 *     td_record_start(NULL);
 *     ... what is to be recorded ...
 *     td_record_stop("profile.html");
 *
 * Link with -ltopdown-record. Functions return 0, or a negative code: -errno. td_record_last_error tells the whole story: what
 * happened, why, and what to do about it. The library prints nothing and reads no environment variables. Any thread may call
 * any function; a signal handler may call none.
 *
 * Made by `make header` from recorder/src/: do not edit. */
#ifndef TOPDOWN_RECORD_H
#define TOPDOWN_RECORD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to record. All zeros, like NULL: 500 bursts a second and thread, for 1 % of the time, down to the deepest level. */
struct td_record_options {
    /** sizeof(struct td_record_options), set by the caller; 0 means 64. Sizes of other versions are read as in topdown.h. */
    uint32_t size;
    uint32_t frequency;         /**< Bursts per second and thread, up to 2000; 0 means 500. */
    uint32_t level;             /**< 1, 2, or 0 for the deepest that the general-purpose counters have. */
    /** The part of a thread's time that bursts may take, by measurement, in parts per million, from 100 to 500000; 0 means 10000
     * (1 %). Where `frequency` would take more there are fewer bursts, and the profile says so. */
    uint32_t max_overhead_ppm;
    /** Cycles from one sample of a burst to the next, on average, from 300 to 100000; 0 means 1000. Functions that run for less
     * cannot be told. */
    uint64_t gap;
    uint64_t reserved[5];       /**< Zeros. */
};

/** Begins to record all threads of this process, also those that start later. One recording at a time.
 *
 * `options` may be NULL. A thread of the library, which is not recorded itself, asks for bursts of samples of the others. It has
 * all signals of the program blocked, and descriptors of its own (since Linux 5.9), which neither the program nor its
 * children see.
 *
 * Children of a fork are not recorded; they may begin recordings of their own. An exec, or the end of the process, ends the
 * recording, and nothing is written.
 *
 * Any thread may call this.
 *
 * Returns 0, or:
 *  -EINVAL         options->size or another field is wrong
 *  -E2BIG          `options` has a value that this version does not know
 *  -EBUSY          there is a recording already, or another thread is in one of these calls
 *  -EAGAIN         no thread can be made
 * or what td_open returns where general-purpose counters cannot be counted (-ENODEV, -EACCES, -EPERM ...). */
int td_record_start(const struct td_record_options *options);

/** Ends the recording, and writes the profile to a file.
 *
 * The ending of `path` chooses the format: .html, .svg, .json, .csv, .folded, .pprof, .firefox.json, .txt or none (text). "-" is standard output
 * (text). NULL discards the recording. Any thread may call this, whichever began the recording. It takes as long as it takes to
 * read the symbols of the functions that were seen; signals are blocked meanwhile.
 *
 * Returns 0, or:
 *  -EINVAL         `path` is empty, or has the ending of no format
 *  -ENODATA        there is no recording; in a child of a fork: it is the parent's
 *  -EBUSY          another thread is in one of these calls
 *  -ENOENT, -EACCES ...  the file cannot be opened
 *  -ENOSPC ...     the file cannot be written
 * After a failure nothing is lost: the recording goes on if the file could not be opened, and has ended and is kept if it could not
 * be written. Call this again, with another path. */
int td_record_stop(const char *path);

/** Copies the calling thread's last failure of these calls in full: what happened, why, and what to do about it.
 *
 * `buffer` receives the text, cut to `length` - 1 bytes, and a NUL. Pass NULL and 0 to ask for the length. Successful calls
 * do not change the text. Any thread may call this.
 *
 * Returns the length of the whole text without the NUL, 0 if no call of this thread has failed yet; or -EINVAL if
 * `buffer` is NULL and `length` is not 0. */
int td_record_last_error(char *buffer, size_t length);

#ifdef __cplusplus
}
#endif

#endif
