"""Put runs into the model zoo: ``make zoo RUNS="runs/..."``.

For each task and algorithm the certified policy with the highest return is tested again on fresh episodes, and its
evidence bundle is stored in ``src/steingate/zoo``, with a film of the best policy of each task in ``docs/zoo``. Runs
must have default settings apart from task, algorithm, variant, steps and seed, so that the command in the list
trains them again.
"""

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from steingate.cli.render import median_episode
from steingate.evidence.files import read_folder, sums
from steingate.evidence.plan import Plan
from steingate.evidence.verify import read_bundle, verify_bundle
from steingate.evidence.write import write_bundle
from steingate.policies.load import load_policy
from steingate.policies.zoo import FOLDER, ZooEntry, zoo_entries
from steingate.runs import find_runs, load_certification, read_config
from steingate.storage.files import replace_file
from steingate.training.config import make_config
from steingate.training.play import load_player
from steingate.training.video import film_episodes

FILMS = Path(__file__).parents[1] / "docs" / "zoo"
EPISODES = 300  # of the test
FRAMES = 125  # of a film
FRAME_TIME = b"\x08\x00"
MAX_FILM = 300_000  # bytes


def main() -> None:
    """Choose the best run of each task and algorithm, copy it, and make the films."""
    best: dict[Path, tuple[float, Path]] = {}
    for path in (run for root in sys.argv[1:] for run in find_runs(root)):
        certification = load_certification(path)
        if certification is None or not certification["finished"] or not certification["certified"]:
            print(f"{path}: not certified, or not finished")
            continue
        config = read_config(path)["config"]
        ret, place = certification["fresh_episodes"]["return"], FOLDER / config["env"] / config["algo"]
        best[place] = max(best.get(place, (ret, path)), (ret, path))
    for place, (_, path) in best.items():
        add(path, place)
    for task in {entry.task: entry for entry in reversed(zoo_entries())}.values():
        if any(task.path == place for place in best):
            film(task)


def add(path: Path, place: Path) -> None:
    """Test the certified policy of a run on fresh episodes and write the evidence."""
    record = read_config(path)
    config = record["config"]
    names = ("env", "algo", "total_steps", "seed")
    default = make_config({name: config[name] for name in names} | {"variant": config["algorithm"]["variant"]})
    if default.identity != record["identity"]:
        raise SystemExit(f"{path} has settings other than the defaults: {json.dumps(config)}")
    certify = config["certify"]
    domain = f"the simulated task {config['env']}, with the layouts and initial states of training"
    plan = Plan(config["cost_limit"], certify["budget"], certify["delta"], EPISODES, domain=domain)
    with tempfile.TemporaryDirectory() as folder:
        bundle = write_bundle(path, Path(folder) / "bundle", plan, policy="certified", onnx=False)
        shorten(bundle)
        print(verify_bundle(bundle), flush=True)
        if load_policy(bundle).certified:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(bundle, place)


def shorten(bundle: Path) -> None:
    """Remove the pages that `steingate demo` writes from the other files."""
    for name in ("evidence.html", "argument.md"):
        (bundle / name).unlink()
    (bundle / "SHA256SUMS").write_bytes(sums(read_folder(bundle)[0]))


def film(entry: ZooEntry) -> None:
    """Write a film of the test episode with the median return, shown in docs/zoo.md."""
    target, table = FILMS / f"{entry.task}.gif", read_bundle(entry.path).table
    shown = median_episode(table)
    every = max(1, int(table.length[shown]) // FRAMES)
    film_episodes(load_player(entry.path, print), [int(table.seed[shown])], target, every=every, size=240)
    # The time of a frame is in its graphic control extension: 21 F9 04, flags, 1/100 s, transparent color, 00.
    content = re.sub(rb"(!\xf9\x04.)..(.\x00)", rb"\g<1>" + FRAME_TIME + rb"\2", target.read_bytes(), flags=re.DOTALL)
    replace_file(target, content)
    if target.stat().st_size > MAX_FILM:
        raise SystemExit(f"{target} has {target.stat().st_size:,} bytes: more than {MAX_FILM:,}.")


if __name__ == "__main__":
    main()
