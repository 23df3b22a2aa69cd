"""The scripts that write the pages."""

import importlib
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def docs_script(name):
    """Return one of docs/*.py as a module; they import each other as they do when they are run."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(DOCS))
