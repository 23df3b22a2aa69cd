"""Put runs into the model zoo: ``make zoo RUNS="runs/..."``.

For each task and algorithm the certified policy with the highest return is stored in ``src/steingate/zoo``, with a
film of the best policy of each task in ``docs/zoo``. Runs must have default settings apart from task, algorithm,
variant, steps and seed, so that the command in the list trains them again.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from steingate.cli import main as run_command
from steingate.policies.load import load_policy
from steingate.policies.zoo import FOLDER, ZooEntry, zoo_entries
from steingate.runs import RunFolder, find_runs, load_certification, read_config, write_config
from steingate.training.config import make_config

FILMS = Path(__file__).parents[1] / "docs" / "zoo"
FRAMES = 125  # of a film
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
    """Copy the files that a stored policy needs, without the folders of this machine."""
    record = read_config(path)
    config: dict[str, Any] = record["config"]
    default = make_config(
        {key: config[key] for key in ("env", "algo", "total_steps", "seed")}
        | {"variant": config["algorithm"]["variant"]}
    )
    if default.identity != record["identity"]:
        raise SystemExit(f"{path} has settings other than the defaults: {json.dumps(config)}")
    load_policy(path, "certified")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    source, target = RunFolder(path), RunFolder(place)
    write_config(target, record | {"config": config | {"out": "runs"}, "seal": None})
    shutil.copyfile(source.certified, target.certified)
    shutil.copyfile(source.certification, target.certification)
    load_policy(place, "certified")
    print(f"{path} -> {place}")


def film(entry: ZooEntry) -> None:
    """Write a film of an episode, shown in docs/zoo.md."""
    target, steps = FILMS / f"{entry.task}.gif", 500 if "Circle" in entry.task else 1000
    run_command(["render", entry.name, "--out", str(target), "--size", "240", "--every", str(steps // FRAMES)])
    if target.stat().st_size > MAX_FILM:
        raise SystemExit(f"{target} has {target.stat().st_size:,} bytes: more than {MAX_FILM:,}.")


if __name__ == "__main__":
    main()
