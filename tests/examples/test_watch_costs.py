import re
import subprocess
import sys
from pathlib import Path


def test_the_example_is_short_and_notices_the_change():
    path = Path(__file__).parents[2] / "examples" / "watch_costs.py"
    assert len(path.read_text().splitlines()) < 60
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("lab:   Certified at episode")
    found = int(re.search(r"Drift at episode (\d+)", done.stdout)[1])
    assert 500 < found < 600
