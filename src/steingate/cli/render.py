"""``steingate render``: a video of a trained policy, without a display."""

import argparse
import sys

from steingate.cli.evaluate import add_policy_option
from steingate.cli.film_progress import film_progress
from steingate.errors import InputError, MissingExtraError
from steingate.training.stop import StopRequest, stop_on_signals

_TRIED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("run", metavar="RUN", help="run folder")
    add_policy_option(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="video to write, .mp4 or .gif")
    parser.add_argument("--worst", action="store_true", help="show the costliest of N episodes")
    parser.add_argument(
        "--episodes",
        type=int,
        metavar="N",
        help=f"episodes to show, or to choose from (default: 1, or {_TRIED})",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument("--sample", action="store_true", help="draw actions instead of taking the mean")
    parser.add_argument(
        "--every",
        type=int,
        metavar="N",
        help="show one step in N (default: about 30 frames a second, 15 in a GIF)",
    )
    parser.add_argument(
        "--env", metavar="TEXT", help="where the environment is now, if not where the run found it"
    )
    parser.add_argument("--size", type=int, default=480, metavar="N", help="pixels per side (default: 480)")
    parser.add_argument("--camera", default="fixed", choices=("fixed", "track"), help="view of native tasks")


def run(args: argparse.Namespace) -> int:
    """Write the video, print its name, and return the exit status."""
    with stop_on_signals(process=True) as stop:
        _render(args, stop)
    print(args.out)
    return 0


def _render(args: argparse.Namespace, stop: StopRequest) -> None:
    try:
        from steingate.tasks.catalog import TASKS
        from steingate.training.assemble import build_algorithm, make_envs
        from steingate.training.evaluate import evaluate, evaluation_seeds, load_player
        from steingate.training.video import RenderedEnv, record_video
    except ModuleNotFoundError as error:
        raise MissingExtraError("steingate render", "train") from error
    stop.check()
    episodes = args.episodes if args.episodes is not None else (_TRIED if args.worst else 1)
    for name, value in (("--episodes", episodes), ("--every", args.every), ("--size", args.size)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}: it must be greater than zero.")

    def warn(text: str) -> None:
        print(text, file=sys.stderr)

    with film_progress() as show:
        show.say("reading the policy")
        player = load_player(args.run, warn, args.policy, args.env)
        warn(f"the {player.which} policy, after epoch {player.epoch}")
        seeds = evaluation_seeds(args.seed, episodes)
        lengths: list[int] | None = None
        if args.worst:
            show.say(f"playing {episodes} episodes to find the worst")
            found = evaluate(
                args.run,
                episodes,
                seed=args.seed,
                sample=args.sample,
                policy=args.policy,
                env=args.env,
                warn=lambda text: None,
                stop=stop.check,
            )
            seeds, lengths = [seeds[found.worst]], [int(found.episodes.length[found.worst])]
            cost = found.episodes.cost[found.worst]
            warn(f"worst of {episodes} episodes: cost {cost:g}, seed {seeds[0]}")
        show.say("opening the scene")
        options = {"render_mode": "rgb_array"}
        if player.cfg.env.removeprefix("steingate/") in TASKS:
            options |= {"width": args.size, "height": args.size, "camera": args.camera}
        envs = make_envs(player.cfg, build_algorithm(player.cfg), num_envs=1, budget=player.budget, **options)
        assert isinstance(envs, RenderedEnv)
        try:
            record_video(
                envs, player, seeds, args.out, args.sample, args.every, stop.check, show.steps, lengths
            )
        finally:
            envs.close()
