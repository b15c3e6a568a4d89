"""What goes wrong has a name. The texts are the library's: what happened, why, and what to do about it."""


class Error(RuntimeError):
    """A failure. `code` is what the C library returned (-errno, or TD_E* of topdown.h), or 0."""

    def __init__(self, text, code=0):
        super().__init__(text)
        self.code = code


class NoCounters(Error):
    """This thread has no counters; the text says why, and what to do. Its regions have their times alone."""


class NotCounted(Error):
    """A region has no shares, although the counters are open."""


class WrongThread(Error):
    """A region ends in a thread that has not begun it."""


class NoPandas(Error, ImportError):
    """pandas is not installed."""
