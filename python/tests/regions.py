"""Regions by simulated counters: `python3 python/tests/regions.py`, where the package is installed."""

import asyncio
import ctypes
import multiprocessing
import os
import re
import resource
import sys
import threading
import types
import unittest

import topdown
from topdown import _library, _regions

# how the slots of a simulated handle divide (td_simulate_mix in topdown.h)
MIX = {"retiring": 0.4, "bad_speculation": 0.1, "frontend_bound": 0.2, "backend_bound": 0.3}
HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include/topdown.h")


def work(turns=100000):
    for _ in range(turns):
        pass


def in_thread(function):
    """A thread that has not measured yet runs it; what it raises is raised here."""
    failures = []

    def run():
        try:
            function()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def exit_status(function):
    """Of a forked child that runs it."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
            os._exit(0)
        except BaseException as failure:
            print(repr(failure), file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitpid(pid, 0)[1]


def of_child(_):
    with topdown.region("of a child") as region:
        work()
    return region.figures().retiring


class Regions(unittest.TestCase):
    def setUp(self):
        topdown.configure(simulate=True)
        topdown.reset()

    def row(self, name):
        (row,) = topdown.figures(name)
        return row

    def test_shares_have_the_truth_within_their_bounds(self):
        with topdown.region("solve") as region:
            work(1000000)
        figures = region.figures()
        self.assertIsNone(figures.why)
        self.assertIn("simulated", figures.source)
        for name, truth in MIX.items():
            share = getattr(figures, name)
            self.assertTrue(share.low <= truth <= share.high, (name, str(share)))
        for name, share in figures.shares.items():
            self.assertTrue(0 <= share.low <= share.value <= share.high <= 1, name)
            if share.level == 2:
                parts = [part.value for part in figures.shares.values() if part.parent == share.parent]
                self.assertAlmostEqual(sum(parts), figures.shares[share.parent].value)
        self.assertIn("retiring", str(figures))
        self.assertGreater(figures.seconds, 0)
        self.assertTrue(0 < figures.own < 0.5, figures.own)
        with topdown.region("short") as short:
            pass
        self.assertRegex(str(short.figures()), r"\n  of the slots [1-9][0-9.]* % begin and end the executions$")
        with self.assertRaisesRegex(AttributeError, "no 'retirng'"):
            figures.retirng
        with self.assertRaisesRegex(topdown.NotCounted, "l1_bound"):
            figures.l1_bound

    def test_regions_nest_and_repeat(self):
        def fall(depth):
            with topdown.region("fall"):
                if depth:
                    fall(depth - 1)
                work(1000)

        with topdown.region("outer"):
            for _ in range(3):
                fall(4)
        self.assertEqual((self.row("outer").executions, self.row("fall").executions), (1, 3))
        self.assertGreater(self.row("outer").slots, self.row("fall").slots)
        self.assertGreater(self.row("outer").seconds, self.row("fall").seconds)

    def test_an_exception_ends_a_region(self):
        with self.assertRaises(KeyError):
            with topdown.region("fails"):
                work()
                raise KeyError
        self.assertEqual(self.row("fails").executions, 1)
        self.assertGreater(self.row("fails").retiring.low, 0)

    def test_functions_are_measured(self):
        @topdown.measured
        def plain(number):
            "Says so."
            work()
            return number

        @topdown.measured("by name")
        def other():
            raise ValueError

        self.assertEqual((plain(3), plain(4), plain.__name__, plain.__doc__), (3, 4, "plain", "Says so."))
        self.assertEqual(self.row(plain.__qualname__).executions, 2)
        self.assertRaises(ValueError, other)
        self.assertEqual(self.row("by name").executions, 1)

        async def later():
            with topdown.region("task"):
                await asyncio.sleep(0)

        def generator():
            yield

        for function in later, generator:
            with self.assertRaisesRegex(TypeError, "returns before it has run"):
                topdown.measured("no")(function)
        with self.assertRaises(TypeError):
            topdown.region(5)
        asyncio.run(later())
        self.assertEqual(self.row("task").executions, 1)

    def test_each_thread_has_its_own(self):
        count = 8
        barrier = threading.Barrier(count)
        shared = topdown.region("shared")

        def run():
            barrier.wait()
            for _ in range(10):
                with shared:
                    work(10000)

        threads = [threading.Thread(target=run) for _ in range(count)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            topdown.figures()  # (which may be asked for meanwhile)
        for thread in threads:
            thread.join()
        rows = topdown.figures("shared")
        self.assertEqual([row.executions for row in rows], [10] * count)
        self.assertEqual(len({row.thread_id for row in rows}), count)
        for row in rows:
            self.assertTrue(row.backend_bound.low <= MIX["backend_bound"] <= row.backend_bound.high)
        topdown.reset()
        self.assertEqual(topdown.figures("shared"), [])

    def test_a_region_ends_in_its_thread(self):
        region = topdown.region("mine").__enter__()
        with self.assertRaisesRegex(topdown.WrongThread, "'mine' ends in a thread that has not begun it"):
            in_thread(lambda: region.__exit__(None, None, None))
        self.assertEqual(self.row("mine").executions, 0)
        with self.assertRaisesRegex(topdown.NotCounted, "no execution"):
            self.row("mine").retiring
        work()
        region.__exit__(None, None, None)
        self.assertEqual(self.row("mine").executions, 1)
        self.assertRaises(topdown.WrongThread, region.__exit__, None, None, None)

    def test_reset_while_a_region_runs(self):
        with topdown.region("running"):
            topdown.reset()
            self.assertEqual(self.row("running").executions, 0)
        self.assertEqual(topdown.figures("running"), [])
        with topdown.region("running"):
            work()
        self.assertEqual(self.row("running").executions, 1)

    def test_a_forked_child_counts_for_itself(self):
        def child():
            assert topdown.figures() == []
            around.__exit__(None, None, None)  # (begun in the parent: nothing is counted)
            assert topdown.figures("around") == []
            assert of_child(None).low > 0
            assert [row.name for row in topdown.figures()] == ["of a child"]

        around = topdown.region("around").__enter__()
        self.assertEqual(exit_status(child), 0)
        work()
        around.__exit__(None, None, None)
        self.assertEqual(self.row("around").executions, 1)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for share in pool.map(of_child, range(4)):
                self.assertTrue(share.low <= MIX["retiring"] <= share.high)

    def test_without_counters_there_are_times(self):
        def run():
            # (no descriptor is left; or this machine has no counters anyway)
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
            try:
                with self.assertRaises(topdown.NoCounters) as caught:
                    topdown.check()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            self.assertLess(caught.exception.code, 0)
            self.assertIn(";", str(caught.exception))  # (what; what to do)
            with topdown.region("timed") as region:
                work()
            figures = region.figures()
            self.assertEqual((figures.executions, figures.slots, figures.source), (1, 0, "time alone"))
            self.assertGreater(figures.seconds, 0)
            self.assertIs(figures.why, caught.exception)
            self.assertRaises(topdown.NoCounters, lambda: figures.retiring)

        topdown.configure()
        in_thread(run)

    def test_options(self):
        topdown.configure(simulate=True, level=1)
        in_thread(lambda: self.assertIn("level 1", topdown.check()))
        for wrong in {"source": "guess"}, {"nodes": ["no_such_node"]}, {"nodes": ["l1_bound"] * 9}:
            self.assertRaises(ValueError, topdown.configure, **wrong)

    def test_pandas(self):
        for name in "first", "second":
            with topdown.region(name):
                work()
        rows = topdown.figures()
        sys.modules["pandas"] = None
        try:
            self.assertRaisesRegex(topdown.NoPandas, "pip install pandas", rows.to_pandas)
            made_up = sys.modules["pandas"] = types.ModuleType("pandas")
            made_up.DataFrame = lambda rows, columns: [dict(zip(columns, row)) for row in rows]
            frame = rows.to_pandas()
        finally:
            del sys.modules["pandas"]
        self.assertEqual(len(frame), sum(len(row.shares) for row in rows))
        for row in frame:
            self.assertEqual(len(row), 16)
            self.assertTrue(row["low"] <= row["value"] <= row["high"])
        self.assertEqual({row["region"] for row in frame}, {"first", "second"})

    def test_structures_are_those_of_the_header(self):
        with topdown.region("any"):
            work()
        total = _regions._own.totals["any"].sum
        info = _regions._own_thread().info
        for struct in total, info, _library.decode(total)[1][0][1]:
            self.assertEqual(struct.size, ctypes.sizeof(struct))
        if os.path.exists(HEADER):
            with open(HEADER) as file:
                text = file.read()
            numbers = dict(re.findall(r"^#define (TD_\w+) (-?\d+)", text, re.M))
            self.assertEqual(int(numbers["TD_FLAG_SIMULATE"]), _library.SIMULATE)
            for name, number in _regions._SOURCES.items():
                self.assertEqual(int(numbers["TD_SOURCE_" + name.upper()]), number)
            for struct, of in {"td_sum": total, "td_info": info, "td_options": _regions._options}.items():
                body = re.search(r"^struct " + struct + r" \{(.*?)^\}", text, re.M | re.S)[1]
                fields = re.findall(r"^    \w+ (\w+)(?:\[\d+\])?;", body, re.M)
                self.assertEqual(fields, [name for name, *_ in of._fields_])


if __name__ == "__main__":
    unittest.main()
