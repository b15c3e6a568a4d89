"""Figures: times, and shares of the pipeline slots with their bounds."""

from typing import NamedTuple, Optional

from . import _library
from ._errors import NoPandas, NotCounted

_UNITS = {1: "slots", 2: "cycles", 3: "operations"}


class Share(NamedTuple):
    """A node's share, 0 to 1. The truth is between `low` and `high`."""

    value: float
    low: float
    high: float
    level: int
    parent: Optional[str]
    unit: str

    def __str__(self):
        return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


class Figures:
    """What a thread's executions of a region that have ended add up to. A node's name is an attribute: `figures.memory_bound`."""

    def __init__(self, thread, name, total):
        self.name = name
        self.thread = thread.name
        self.thread_id = thread.id
        self.executions = total.executions
        self.seconds = total.nanoseconds / 1e9  # CLOCK_MONOTONIC
        self.slots = total.sum.slots
        # the part of the slots that are what begins and ends the executions in Python, as empty ones had them
        self.own = min(1.0, thread.own_slots * total.sum.executions / self.slots) if self.slots else 0.0
        self.why = thread.why or total.failure
        self.source = _source(thread.info)
        self._shares = {}
        if thread.info and total.sum.executions:
            code, nodes = _library.decode(total.sum)
            if code:
                self.why = self.why or _library.last_error(code, NotCounted)
            for name, node in nodes:
                if node.measured:
                    parent, unit = _library.node_name(node.parent), _UNITS[node.unit]
                    self._shares[name] = Share(node.value, node.low, node.high, node.level, parent, unit)
        if not self._shares and not self.why:
            self.why = NotCounted(f"no execution of region {self.name!r} has ended in thread {self.thread!r}")

    @property
    def shares(self):
        """The share of each node that was counted, by its name. Raises `why` if there is none."""
        if not self._shares:
            raise self.why.with_traceback(None)
        return dict(self._shares)

    def __getattr__(self, name):
        if name.startswith("_") or not _library.node_number(name):
            raise AttributeError(f"figures have no {name!r}")
        if name not in self.shares:
            raise NotCounted(f"{name} was not counted ({self.source}); topdown.configure chooses levels and nodes")
        return self._shares[name]

    def __str__(self):
        lines = [f"{self.name} ({self.thread}): {self.executions} executions, {self.seconds:.6f} s, {self.slots} slots; {self.source}"]
        lines += [f"{'  ' * share.level}{name:20} {share}" for name, share in self._shares.items()]
        if self.own >= 0.0005 and self._shares:  # what shows in a decimal
            lines.append(f"  of the slots {100 * self.own:.1f} % begin and end the executions")
        return "\n".join(lines + [f"  {self.why}"] * bool(self.why))

    __repr__ = __str__


class FiguresList(list):
    """Figures, a row for each thread and region."""

    def __str__(self):
        return "\n".join(map(str, self))

    def to_pandas(self):
        """A DataFrame with a row for each node of each thread and region; without shares it is one row."""
        try:
            import pandas
        except ImportError as error:
            raise NoPandas("to_pandas() needs pandas, which is not installed: pip install pandas") from error
        rows = []
        for row in self:
            nodes = row._shares or {None: Share(float("nan"), float("nan"), float("nan"), None, None, None)}
            for node, share in nodes.items():
                rows.append((row.name, row.thread, row.thread_id, row.executions, row.seconds, row.slots, row.own, node, *share, row.source, str(row.why or "")))
        columns = "region thread thread_id executions seconds slots own node value low high level parent unit source why"
        return pandas.DataFrame(rows, columns=columns.split())


def _source(info):
    if info is None:
        return "time alone"
    path, core, note = _library.PATHS[info.path], info.core.decode(), info.note.decode()
    return f"{core}, level {info.level}, by {path}" + (f" ({note})" if note else "")
