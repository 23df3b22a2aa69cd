"""The tables that are kept with long runs follow from the numbers that are kept with them."""

import shutil
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "results"


def test_the_tables_of_the_learning_grid_are_written_again_byte_for_byte(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(RESULTS))
    import keep_learning

    shutil.copy(RESULTS / "learning" / "summary.csv", tmp_path)
    monkeypatch.setattr(keep_learning, "FOLDER", tmp_path)
    keep_learning.write_tables(keep_learning.read_rows(tmp_path / "summary.csv"))
    for name in ("corrected.md", "published.md", "options.md"):
        assert (tmp_path / name).read_bytes() == (RESULTS / "learning" / name).read_bytes(), name
