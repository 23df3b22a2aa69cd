"""``steingate render`` and ``steingate demo``: videos of trained policies, without a display."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from steingate.certificates.formatting import number
from steingate.cli.output import warn
from steingate.cli.parser import Parser, add_run_options
from steingate.errors import InputError, nearest
from steingate.storage.files import replace_file
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.evidence.statistics import EpisodeTable

SEARCHED = 20  # episodes that --worst plays by default
REPLAYED = 8  # test episodes that the demo plays again
DEMO_EVERY = 4  # steps per frame of the demo


def render_arguments(parser: Parser) -> None:
    option = parser.option
    add_run_options(parser)
    option("--out", "FILE", "video to write, .mp4 or .gif", required=True)
    parser.flag("--worst", "show the episode with the largest cost of N")
    shown = f"number of episodes to show, or to play with --worst (default: 1, or {SEARCHED})"
    option("--episodes", "N", shown, type=int)
    option("--seed", "N", "seed of the episodes", type=int, default=0)
    parser.flag("--sample", "sample actions instead of taking the mean")
    option("--every", "N", "show one step in N (default: about 30 frames per second, 15 in a GIF)", type=int)
    option("--size", "N", "pixels per side", type=int, default=480)
    option("--camera", None, "view of native tasks", choices=("fixed", "track"), default="fixed")


def render(args: argparse.Namespace) -> int:
    """Write the video and print its name."""
    with stop_on_signals(process=True) as stop:
        from steingate.training.evaluate import evaluation_seeds, play_episodes
        from steingate.training.play import load_player
        from steingate.training.video import film_episodes

        stop.check()
        episodes = args.episodes if args.episodes is not None else (SEARCHED if args.worst else 1)
        for name, value in (("--episodes", episodes), ("--every", args.every), ("--size", args.size)):
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, got {value}.")
        player = load_player(args.run, warn, args.policy, args.env, args.trust_code)
        warn(f"{player.which} policy, after epoch {player.epoch}")
        seeds = evaluation_seeds(args.seed, episodes)
        if args.worst:
            cost = play_episodes(player, seeds, args.sample, stop.check)[0].cost
            seeds = [seeds[int(cost.argmax())]]
            warn(f"largest cost of {episodes} episodes: {cost.max():g}, seed {seeds[0]}")
        film_episodes(player, seeds, args.out, args.sample, args.size, args.camera, every=args.every, stop=stop.check)
    print(args.out)
    return 0


def demo_arguments(parser: Parser) -> None:
    default = "zoo:SafetyCarGoal1-v0"
    parser.add_argument("policy", nargs="?", default=default, metavar="NAME", help=f"of the zoo (default: {default})")
    parser.option("--out", "DIR", "folder for the files", default="demo")


def demo(args: argparse.Namespace) -> int:
    """Verify the evidence of a policy, play some of its episodes again, and write evidence and film."""
    from steingate.policies.zoo import PREFIX, run_folder, zoo_entries

    if not args.policy.startswith(PREFIX):
        similar = nearest(PREFIX + args.policy, (f"{PREFIX}{entry.task}" for entry in zoo_entries()))
        raise InputError(f"{args.policy!r} is no policy of the zoo{similar}; `steingate zoo` lists them.")
    with stop_on_signals(process=True) as stop:
        folder, out = run_folder(args.policy), Path(args.out)
        from steingate.evidence.argument import argument_markdown
        from steingate.evidence.files import read_folder
        from steingate.evidence.page import page
        from steingate.evidence.verify import read_bundle, replay_episodes
        from steingate.training.play import load_player
        from steingate.training.video import film_episodes

        stop.check()
        bundle = read_bundle(folder)
        print(bundle.evidence["claim"]["sentence"])
        (out / "evidence").mkdir(parents=True, exist_ok=True)
        for name, content in read_folder(folder)[0].items():
            replace_file(out / "evidence" / name, content)
        replace_file(out / "evidence.html", page(bundle.evidence, bundle.plan, bundle.table).encode())
        replace_file(out / "argument.md", argument_markdown(bundle.evidence, bundle.plan).encode())
        different, played = replay_episodes(folder, bundle, 1, REPLAYED)
        same = f"{played - len(different)} of {played}"
        print(f"Played again on this machine, {same} test episodes have the same cost and return.", flush=True)
        median = median_episode(bundle.table)
        film, player, seeds = out / "film.mp4", load_player(args.policy, print), [int(bundle.table.seed[median])]
        film_episodes(player, seeds, film, every=DEMO_EVERY, stop=stop.check)
    print(f"{film}: the test episode with the median return, cost {number(float(bundle.table.cost[median]))}")
    print(f"{out / 'evidence.html'}: the evidence, as a page")
    print(f"{out / 'argument.md'}: outline of a safety argument with this evidence")
    print(
        f"{out / 'evidence'}: the files of the evidence; check them with: steingate evidence verify {out / 'evidence'}"
    )
    return 0


def median_episode(table: "EpisodeTable") -> int:
    """Return the index of the episode with the median return."""
    return int(table.ret.argsort(kind="stable")[len(table.ret) // 2])
