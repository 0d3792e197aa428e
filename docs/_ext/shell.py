"""What runs first in the kernel of a notebook: lines of a shell are commands of this package, in this process."""

import os
import sys
from pathlib import Path

import rich.console

sys.path.insert(0, EXTENSIONS)  # noqa: F821 - conf.py writes the folder here

from session import Session

rich.console._is_jupyter = lambda: False  # the command line prints text, as in a terminal
SHELL = Session(Path.cwd())
os.environ["DOVETAIL_LEDGER"] = SHELL.ledger
get_ipython().system = lambda line: print(SHELL.command(line), end="")  # type: ignore[name-defined]  # noqa: F821
