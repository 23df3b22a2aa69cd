"""``steingate demo``: evidence and a film of a certified policy of the zoo, without training."""

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steingate.certificates.formatting import number
from steingate.cli.output import progress_bar
from steingate.cli.parser import Parser
from steingate.errors import InputError
from steingate.policies.zoo import PREFIX, run_folder
from steingate.storage.files import replace_file
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.evidence.statistics import EpisodeTable

REPLAYED = 8  # test episodes that are played again
EVERY = 4  # steps per frame


def demo_arguments(parser: Parser) -> None:
    """Add the options of ``demo``."""
    default = "zoo:SafetyCarGoal1-v0"
    parser.add_argument("policy", nargs="?", default=default, metavar="NAME", help=f"of the zoo (default: {default})")
    parser.add_argument("--out", default="demo", metavar="DIR", help="folder for the files (default: demo)")


def median_episode(table: "EpisodeTable") -> int:
    """Return the index of the episode with the median return."""
    return int(np.argsort(table.ret, kind="stable")[len(table.ret) // 2])


def demo(args: argparse.Namespace) -> int:
    """Verify the evidence of a policy, play some of its episodes again, and write evidence and film."""
    if not args.policy.startswith(PREFIX):
        raise InputError(f"{args.policy!r} is no policy of the zoo; `steingate zoo` lists them.")
    with stop_on_signals(process=True) as stop, progress_bar() as update:
        folder, out = run_folder(args.policy), Path(args.out)
        from steingate.evidence.files import read_folder
        from steingate.evidence.replay import replay_episodes
        from steingate.evidence.verify import read_bundle
        from steingate.training.play import load_player
        from steingate.training.video import film_episodes

        stop.check()
        update("verifying the evidence")
        bundle = read_bundle(folder)
        print(bundle.evidence["claim"]["sentence"])
        for name, content in read_folder(folder)[0].items():
            (out / "evidence").mkdir(parents=True, exist_ok=True)
            replace_file(out / "evidence" / name, content)
        update("playing test episodes again")
        different, played = replay_episodes(folder, bundle, 1, REPLAYED)
        same = f"{played - len(different)} of {played}"
        print(f"Played again on this machine, {same} test episodes have the same cost and return.", flush=True)
        film, shown = out / "film.mp4", median_episode(bundle.table)
        player, seeds = load_player(args.policy, print), [int(bundle.table.seed[shown])]
        film_episodes(player, seeds, film, every=EVERY, stop=stop.check, progress=partial(update, "rendering steps"))
    print(f"{film}: the test episode with the median return, cost {number(float(bundle.table.cost[shown]))}")
    print(f"{out / 'evidence' / 'evidence.html'}: the evidence, as a page")
    return 0
