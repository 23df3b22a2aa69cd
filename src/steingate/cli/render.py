"""``steingate render``: a video of a trained policy, without a display."""

import argparse
from functools import partial

from steingate.cli.evaluate import add_run_options
from steingate.cli.output import progress_bar, warn
from steingate.cli.parser import Parser
from steingate.errors import InputError
from steingate.training.stop import stop_on_signals

SEARCHED = 20  # episodes that --worst plays by default


def render_arguments(parser: Parser) -> None:
    """Add the options of ``render``."""
    add_run_options(parser)
    add = parser.add_argument
    add("--out", required=True, metavar="FILE", help="video to write, .mp4 or .gif")
    add("--worst", action="store_true", help="show the episode with the largest cost of N")
    shown = f"number of episodes to show, or to play with --worst (default: 1, or {SEARCHED})"
    add("--episodes", type=int, metavar="N", help=shown)
    add("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    add("--sample", action="store_true", help="sample actions instead of taking the mean")
    every = "show one step in N (default: about 30 frames per second, 15 in a GIF)"
    add("--every", type=int, metavar="N", help=every)
    add("--size", type=int, default=480, metavar="N", help="pixels per side (default: 480)")
    add("--camera", default="fixed", choices=("fixed", "track"), help="view of native tasks")


def render(args: argparse.Namespace) -> int:
    """Write the video and print its name."""
    with stop_on_signals(process=True) as stop, progress_bar() as update:
        from steingate.training.evaluate import evaluation_seeds, play_episodes
        from steingate.training.play import load_player
        from steingate.training.video import film_episodes

        stop.check()
        episodes = args.episodes if args.episodes is not None else (SEARCHED if args.worst else 1)
        for name, value in (("--episodes", episodes), ("--every", args.every), ("--size", args.size)):
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, got {value}.")
        update("loading the policy")
        player = load_player(args.run, warn, args.policy, args.env, args.trust_code)
        warn(f"{player.which} policy, after epoch {player.epoch}")
        seeds = evaluation_seeds(args.seed, episodes)
        if args.worst:
            update(f"playing {episodes} episodes")
            cost = play_episodes(player, seeds, args.sample, stop.check)[0].cost
            seeds = [seeds[int(cost.argmax())]]
            warn(f"largest cost of {episodes} episodes: {cost.max():g}, seed {seeds[0]}")
        film_episodes(
            player, seeds, args.out, args.sample, args.every, stop.check, partial(update, "rendering steps"),
            size=args.size, camera=args.camera,
        )  # fmt: skip
    print(args.out)
    return 0
