"""Regions. Each thread has counters and sums of its own."""

import ctypes
import functools
import inspect
import os
import threading
from time import perf_counter_ns

from . import _library
from ._errors import NoCounters, WrongThread
from ._figures import Figures, FiguresList

_SOURCES = {"auto": 0, "registers": 1, "counters": 2}
_options = _library.Options(size=ctypes.sizeof(_library.Options))
_threads = []  # all that have measured, also those that have ended


class _Total:
    """What a thread's executions of one region add up to."""

    __slots__ = ("handle", "sum", "address", "depth", "counting", "began", "nanoseconds", "executions", "failure")

    def __init__(self, handle):
        self.handle = handle
        self.sum = _library.Sum()
        self.address = ctypes.addressof(self.sum)
        self.depth = 0
        self.forget()

    def forget(self):
        ctypes.memset(self.address, 0, ctypes.sizeof(self.sum))
        self.began = self.nanoseconds = self.executions = 0
        self.counting = False
        self.failure = None


class _Thread:
    """A thread that has measured, and its counters."""

    def __init__(self):
        self.name = threading.current_thread().name
        self.id = threading.get_native_id()
        self.totals = {}
        self.has_ended = False
        self.own_slots = 0.0  # of an empty execution
        self.handle = self.info = self.why = None
        opened, self.info = _library.open_counters(_options)
        if opened < 0:
            self.why = _library.last_error(opened, NoCounters)
        else:
            self.handle = opened

    def figures(self, name):
        return Figures(self, name, self.totals.get(name) or _Total(None))

    def end(self, close=_library.close):
        self.has_ended = True
        handle, self.handle = self.handle, None
        close(handle)


class _AtEnd:
    """It goes with what its thread alone has: the thread itself closes its counters when it ends."""

    def __init__(self, thread):
        self.thread = thread

    def __del__(self):
        self.thread.end()


class _Own(threading.local):
    """What the calling thread has."""

    totals = {}
    at_end = None
    inherited = {}  # regions in which it was forked: what has begun in the parent is not counted here


_own = _Own()


def _own_thread():
    if _own.at_end is None:
        thread = _Thread()
        _own.at_end, _own.totals = _AtEnd(thread), thread.totals
        _threads.append(thread)
        if thread.handle:
            thread.own_slots = _slots_of_an_empty_region(thread)
    return _own.at_end.thread


def _own_total(name):
    thread = _own_thread()
    return thread.totals.setdefault(name, _Total(thread.handle))


def _slots_of_an_empty_region(thread):
    empty = region("")
    for executions in 4, 16:  # (the first ones meet cold caches)
        total = _own_total("")
        total.forget()
        for _ in range(executions):
            with empty:
                pass
    del thread.totals[""]
    return total.sum.slots / executions


class region:
    """A region of the calling thread: `with topdown.region("solve"): ...`. Regions nest; one within itself is a part of it."""

    __slots__ = ("name",)

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError("a region's name is a str, not " + type(name).__name__)
        self.name = name

    def __enter__(self):
        try:
            total = _own.totals[self.name]
        except KeyError:
            total = _own_total(self.name)
        total.depth += 1
        if total.depth == 1:
            total.began = perf_counter_ns()
            if total.handle:
                code = _library.sum_begin(total.handle, total.address)
                total.counting = not code
                if code:
                    total.failure = _library.last_error(code)
        return self

    def __exit__(self, *_):
        total = _own.totals.get(self.name)
        if total is None or total.depth == 0:
            return _ends_elsewhere(self.name)
        if total.depth == 1 and total.began:  # (0 after a reset)
            if total.counting:
                code = _library.sum_end(total.handle, total.address)
                if code:
                    total.failure = _library.last_error(code)
            total.nanoseconds += perf_counter_ns() - total.began
            total.executions += 1
        total.depth -= 1

    def figures(self):
        """What the calling thread's executions of it that have ended add up to."""
        return _own_thread().figures(self.name)


def _ends_elsewhere(name):
    if not _own.inherited.get(name):
        raise WrongThread(f"region {name!r} ends in a thread that has not begun it; begin and end it in the same thread")
    _own.inherited[name] -= 1


def measured(name=None):
    """A decorator: each call of the function is an execution of a region of this name, or else of the function's."""
    if callable(name):
        return measured()(name)

    def decorate(function):
        if any(of(function) for of in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)):
            raise TypeError(f"{function.__qualname__} returns before it has run; have `with topdown.region(...)` in it")
        around = region(name or function.__qualname__)

        @functools.wraps(function)
        def wrapper(*arguments, **named):
            with around:
                return function(*arguments, **named)

        return wrapper

    return decorate


def figures(name=None):
    """What all threads' executions have added up to, a row for each thread and region; of one region, if it is named."""
    found = [(thread, each) for thread in list(_threads) for each, total in list(thread.totals.items()) if total.executions or total.depth]
    return FiguresList(thread.figures(each) for thread, each in found if name in (None, each))


def check():
    """Raises NoCounters if the calling thread cannot be measured; else what is measured, as `Figures.source`."""
    thread = _own_thread()
    if thread.why:
        raise thread.why.with_traceback(None)
    return thread.figures("").source


def configure(*, source="auto", level=0, nodes=(), simulate=False):
    """How threads measure whose first region is yet to come: td_options of topdown.h. `nodes`: names of nodes of deeper levels."""
    global _options
    if source not in _SOURCES:
        raise ValueError(f"source is one of {', '.join(_SOURCES)}, not {source!r}")
    options = _library.Options(size=ctypes.sizeof(_library.Options), source=_SOURCES[source], level=level)
    options.flags = _library.SIMULATE if simulate else 0
    if len(nodes) > len(options.nodes):
        raise ValueError(f"{len(nodes)} nodes, and {len(options.nodes)} is the most")
    for name in nodes:
        options.nodes[options.node_count] = _library.node_number(name)
        if not options.nodes[options.node_count]:
            raise ValueError(f"no node is called {name!r}; `topdown list` has all")
        options.node_count += 1
    _options = options


def reset():
    """Forgets what has been measured, and the threads that have ended; executions that have not are not counted."""
    _threads[:] = [thread for thread in _threads if not thread.has_ended]
    for thread in list(_threads):
        for total in list(thread.totals.values()):
            total.forget()


def _in_child():
    """The counters are the parent's; this process's first region opens its own."""
    _threads.clear()
    _own.inherited = {name: total.depth for name, total in _own.totals.items() if total.depth}
    _own.totals, _own.at_end = {}, None


os.register_at_fork(after_in_child=_in_child)
