"""Regions on the emulated machine, whose threads say how their slots divide (c-tests/vm/mix.h): the truth is within each bound. Arguments: by
which sources."""

import ctypes
import os
import sys
import threading

import topdown

ARCH_PRCTL, ARCH_SET_GS = 158, 0x1001
_system_call = ctypes.CDLL(None).syscall
_system_call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_ulong]

# retiring, bad speculation, frontend bound in 1/64 of slots; heavy operations, mispredicts, latency, memory in 1/16 of their parent
MIXES = [(16, 4, 8, 4, 12, 8, 13), (40, 2, 20, 1, 3, 5, 7), (5, 30, 3, 15, 2, 14, 9), (8, 8, 40, 8, 8, 15, 1)]


def set_mix(mix):
    value = 0x2A << 41
    for part, shift in zip(mix, (34, 28, 22, 18, 14, 10, 6)):
        value |= part << shift
    _system_call(ARCH_PRCTL, ARCH_SET_GS, value)


def truth(mix):
    retiring, bad, frontend, *parts = mix
    backend = 64 - retiring - bad - frontend
    level1 = [("retiring", retiring), ("bad_speculation", bad), ("frontend_bound", frontend), ("backend_bound", backend)]
    level2 = ("heavy_operations", "light_operations"), ("branch_mispredicts", "machine_clears"), ("fetch_latency", "fetch_bandwidth"), ("memory_bound", "core_bound")
    shares = {name: whole / 64 for name, whole in level1}
    for (_, whole), (first, second), part in zip(level1, level2, parts):
        shares[first], shares[second] = whole * part / 1024, whole * (16 - part) / 1024
    return shares


def work(turns):
    for _ in range(turns):
        pass


def is_true(figures, mix):
    assert figures.why is None, figures
    checked = 0
    for name, true in truth(mix).items():
        if name in figures.shares:
            share = figures.shares[name]
            assert share.low <= true <= share.high, f"{name} is truly {true}: {figures}"
            checked += 1
    assert checked in (4, 12), figures


def one_after_the_other():
    for k, mix in enumerate(MIXES):
        set_mix(mix)
        with topdown.region(f"mix {k}") as region:
            work(20000)
        is_true(region.figures(), mix)
        # short ones, and ones that an exception ends
        with topdown.region(f"around {k}") as around:
            for n in range(200):
                try:
                    with topdown.region(f"short {k}") as short:
                        if n % 2:
                            raise KeyError
                except KeyError:
                    pass
        is_true(short.figures(), mix)
        is_true(around.figures(), mix)


def threads_at_once():
    def run(mix):
        set_mix(mix)
        for _ in range(20):
            with region:
                work(1000)

    region = topdown.region("at once")
    threads = {threading.Thread(target=run, args=(mix,)): mix for mix in MIXES}
    descriptors = len(os.listdir("/proc/self/fd"))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = topdown.figures("at once")
    for thread, mix in threads.items():
        (row,) = [row for row in rows if row.thread == thread.name]
        assert row.executions == 20
        is_true(row, mix)
    assert len(os.listdir("/proc/self/fd")) == descriptors, "threads that have ended have left counters open"


def forked():
    set_mix(MIXES[0])
    with topdown.region("around a fork") as around:
        pid = os.fork()
        if pid == 0:
            set_mix(MIXES[1])
            try:
                with topdown.region("child") as region:
                    work(2000)
                is_true(region.figures(), MIXES[1])
                os._exit(0)
            except BaseException as failure:
                print(failure, file=sys.stderr, flush=True)
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        work(2000)
    is_true(around.figures(), MIXES[0])


def overhead():
    """What an execution costs, in instructions: an instruction is a cycle here."""
    slots_per_cycle = topdown._regions._own_thread().info.slots_per_cycle
    set_mix(MIXES[0])
    count = 1000
    with topdown.region("loop") as loop:
        for _ in range(count):
            pass
    with topdown.region("regions") as regions:
        for _ in range(count):
            with topdown.region("empty") as empty:
                pass
    whole = (regions.figures().slots - loop.figures().slots) / count / slots_per_cycle
    figures = empty.figures()
    inside = figures.slots / count / slots_per_cycle
    print(f"an execution takes {whole:.0f} instructions, {inside:.0f} of them in the region; {topdown.check()}")
    assert 0 < inside < whole
    # what is told to be the library's own is nearly all of an empty region, and little of one that works
    assert 0.5 < figures.own <= 1, figures.own
    assert loop.figures().own < 0.5, loop.figures().own


def main():
    for source in sys.argv[1:]:
        topdown.configure(source=source)
        failures = []

        def run():
            try:
                topdown.check()
                one_after_the_other()
                threads_at_once()
                forked()
                overhead()
            except BaseException as failure:
                failures.append(failure)

        topdown.reset()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]


main()
