"""``steingate dashboard``: the report's page, live, on this machine alone."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("runs", nargs="+", metavar="RUNS", help="run folders, or folders that hold some")
    parser.add_argument(
        "--port",
        type=int,
        default=8265,
        metavar="N",
        help="port on 127.0.0.1; 0 takes a free one (default: 8265)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, and return the exit status."""
    from steingate.report.dashboard import ADDRESS, make_server
    from steingate.report.loading import require_runs
    from steingate.report.monitors import monitor_files

    if not monitor_files(args.runs):
        require_runs(args.runs)
    with make_server(args.runs, args.port) as server:
        print(f"http://{ADDRESS}:{server.server_address[1]}/", flush=True)
        print("Ctrl-C ends it; runs are only read.", flush=True)
        server.serve_forever(poll_interval=0.2)
    return 0
