"""``steingate evidence``: test a policy by a plan and write a bundle; write a plan; verify a bundle."""

from argparse import Namespace
from pathlib import Path

from steingate.cli.output import warn
from steingate.cli.parser import Parser, add_env_options, add_run_options
from steingate.errors import InputError
from steingate.storage.files import replace_file

DOES_NOT_VERIFY = 1
ACTIONS = {
    "plan": "Write the plan of a test, before the test.",
    "verify": "Compute every hash and every statistic of a bundle again; needs NumPy alone.",
}


def evidence_arguments(parser: Parser) -> None:
    option = parser.option
    action = parser.argv.pop(0) if parser.argv and parser.argv[0] in ACTIONS else "run"
    parser.set_defaults(action=action)
    if action != "run":
        parser.prog, parser.description = f"steingate evidence {action}", ACTIONS[action]
    if action == "plan":
        option("--limit", "D", "limit on the episode cost", type=float, required=True)
        option("--budget", "B", "accepted violation probability", type=float, default=0.1)
        option("--delta", "P", "error probability, 1 - confidence", type=float, default=0.05)
        option("--episodes", "N", "number of episodes (default: 300; --until-certified: at most 1000)", type=int)
        parser.flag("--until-certified", "let an anytime-valid monitor end the test")
        option("--domain", "TEXT", "operating domain in words", required=True)
        option("--out", "FILE", "file of the plan", default="plan.toml")
    elif action == "verify":
        parser.add_argument("bundle", metavar="DIR", help="folder of the bundle")
        option("--digest", "HEX", "digest that the bundle must have")
        option("--replay", "N", "play N episodes again and compare them bit for bit", type=int, default=0)
        option("--first", "I", "number of the first episode to play again", type=int, default=1)
        add_env_options(parser)
    else:
        add_run_options(parser)
        option("--out", "DIR", "new folder for the bundle", required=True)
        option("--plan", "FILE", "the plan (default: one for limit, risk and confidence of the run, written now)")
        parser.flag("--no-onnx", "do not write policy.onnx")
        parser.epilog = (
            "steingate evidence plan --help    write a plan\nsteingate evidence verify --help  verify a bundle\n"
            "A run folder named plan or verify is given as ./plan or ./verify."
        )


def evidence(args: Namespace) -> int:
    """Write a bundle or a plan, or verify a bundle; return 1 if it does not verify."""
    if args.action == "plan":
        return _write_plan(args)
    from steingate.evidence.verify import verify_bundle

    if args.action == "verify":
        options = {name: getattr(args, name) for name in ("digest", "replay", "first", "env", "trust_code")}
        found = verify_bundle(args.bundle, **options)
        print(found)
        return 0 if found.ok else DOES_NOT_VERIFY
    from steingate.evidence.write import write_bundle
    from steingate.training.stop import stop_on_signals

    with stop_on_signals(process=True) as stop:
        options = {name: getattr(args, name) for name in ("plan", "policy", "env", "trust_code")}
        onnx = False if args.no_onnx else None
        path = write_bundle(args.run, args.out, onnx=onnx, warn=warn, stop=stop.check, **options)
    print(verify_bundle(path))
    if not (path / "policy.onnx").exists() and not args.no_onnx:
        warn("policy.onnx was not written: it needs the extra onnx.")
    return 0


def _write_plan(args: Namespace) -> int:
    from steingate.evidence.plan import Plan

    episodes = args.episodes if args.episodes is not None else (1000 if args.until_certified else 300)
    if Path(args.out).exists():
        raise InputError(f"{args.out} exists: a plan is not replaced; give another --out.")
    plan = Plan(args.limit, args.budget, args.delta, episodes, args.until_certified, args.domain)
    replace_file(Path(args.out), plan.to_toml().encode())
    print(f"{args.out}, created {plan.created.isoformat()}")
    return 0
