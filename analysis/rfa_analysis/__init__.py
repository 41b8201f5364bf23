"""Runs of rfa as data frames, tables, figures and a report.

>>> from rfa_analysis import load
>>> runs = load("runs/*.h5")
>>> runs.runs          # one row a run: task, kind, seed, ranks, test accuracy, tokens/s, ...
>>> runs.metrics       # one row a step: loss [nat], seconds [s], tokens_per_second [1/s], ...
>>> runs.evaluations   # one row a validation: loss [nat], accuracy [1] with its interval
>>> runs.tests         # one row a final result on the test split
>>> runs.benchmarks    # one row a line of rfa bench
>>> runs[0].confusion() # rows true, columns predicted
"""

from .errors import AnalysisError
from .load import Bench, Problem, Runs, load
from .run import Run

__version__ = "0.1.0"
__all__ = ["AnalysisError", "Bench", "Problem", "Run", "Runs", "load"]
