"""``steingate evidence``: test a policy by a plan and write a bundle; write a plan; verify a bundle."""

from argparse import Namespace
from pathlib import Path

from steingate.cli.parser import Parser, add_env_options
from steingate.errors import InputError
from steingate.storage.files import replace_file

DOES_NOT_VERIFY = 1
ACTIONS = {
    "run": "test a policy of a run on fresh episodes and write an evidence bundle",
    "plan": "write the plan of a test, before the test",
    "verify": "compute every hash and every statistic of a bundle again; needs NumPy alone",
}


def evidence_arguments(parser: Parser) -> None:
    """Add the options of ``evidence``, ``evidence plan`` or ``evidence verify``."""
    action = parser.argv.pop(0) if parser.argv and parser.argv[0] in ACTIONS else "run"
    parser.set_defaults(action=action)
    add = parser.add_argument
    if action != "run":
        parser.prog = f"steingate evidence {action}"
        parser.description = f"{ACTIONS[action][0].upper()}{ACTIONS[action][1:]}."
    if action == "plan":
        add("--limit", type=float, required=True, metavar="D", help="limit on the episode cost")
        add("--budget", type=float, default=0.1, metavar="B", help="accepted violation probability (default: 0.1)")
        add("--delta", type=float, default=0.05, metavar="P", help="error probability, 1 - confidence (default: 0.05)")
        add(
            "--episodes",
            type=int,
            metavar="N",
            help="number of episodes (default: 300; --until-certified: at most 1000)",
        )
        add("--until-certified", action="store_true", help="let an anytime-valid monitor end the test")
        add("--domain", required=True, metavar="TEXT", help="operating domain in words")
        add("--out", default="plan.toml", metavar="FILE", help="file of the plan (default: plan.toml)")
        return
    if action == "verify":
        add("bundle", metavar="DIR", help="folder of the bundle")
        add("--digest", metavar="HEX", help="digest that the bundle must have")
        add("--replay", type=int, default=0, metavar="N", help="play N episodes again and compare them bit for bit")
        add("--first", type=int, default=1, metavar="I", help="number of the first episode to play again (default: 1)")
        add_env_options(parser)
        return
    from steingate.cli.evaluate import add_run_options

    add_run_options(parser)
    add("--out", required=True, metavar="DIR", help="new folder for the bundle")
    add("--plan", metavar="FILE", help="the plan (default: one for limit, risk and confidence of the run, written now)")
    add("--no-onnx", action="store_true", help="do not write policy.onnx")
    parser.epilog = (
        "steingate evidence plan --help    write a plan\nsteingate evidence verify --help  verify a bundle\n"
        "A run folder named plan or verify is given as ./plan or ./verify."
    )


def evidence(args: Namespace) -> int:
    """Write a bundle or a plan, or verify a bundle; return 1 if it does not verify."""
    if args.action == "plan":
        return _write_plan(args)
    if args.action == "verify":
        from steingate.evidence.verify import verify_bundle

        options = {name: getattr(args, name) for name in ("digest", "replay", "first", "env", "trust_code")}
        found = verify_bundle(args.bundle, **options)
        print(found)
        return 0 if found.ok else DOES_NOT_VERIFY
    from steingate.cli.output import warn
    from steingate.evidence.verify import verify_bundle
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
    print(f"{args.out}: {plan.rule}, created {plan.created.isoformat()}")
    return 0
