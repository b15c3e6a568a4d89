"""Where the CPU's pipeline slots go (TopDown, TMA), in regions of a Python program.

    with topdown.region("solve"):
        solve()
    print(topdown.figures())
"""

from ._errors import Error, NoCounters, NoPandas, NotCounted, WrongThread
from ._figures import Figures, FiguresList, Share
from ._library import version as __version__
from ._regions import check, configure, figures, measured, region, reset

__all__ = [
    "Error",
    "Figures",
    "FiguresList",
    "NoCounters",
    "NoPandas",
    "NotCounted",
    "Share",
    "WrongThread",
    "__version__",
    "check",
    "configure",
    "figures",
    "measured",
    "region",
    "reset",
]
