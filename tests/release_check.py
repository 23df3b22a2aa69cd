"""Build wheel and sdist, check their contents, install the wheel with every extra: ``make release-check``.

The wheel is installed into a fresh environment for every interpreter and extra, where ``steingate doctor``
and an import must work. The installed sizes are written to ``results/install_sizes.csv`` and shown in
docs/install.md.
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SIZES = ROOT / "results" / "install_sizes.csv"
TORCH = os.environ.get("TORCH", "torch")
# A module of each extra that must be importable.
EXTRAS = {
    "": "steingate.certificates.stein",
    "plot": "steingate.report.certificate_figure",
    "envs": "steingate.envs.make",
    "train": "steingate.training.loop",
    "ray": "ray",
    "wandb": "wandb",
    "onnx": "onnx",
    "sb3": "steingate.integrations.sb3",
}
# Checks of ``steingate doctor`` that must pass; the other extras add packages to one of these.
CHECKS = {
    "": {"certificate"},
    "plot": {"certificate"},
    "envs": {"certificate", "simulation", "rendering"},
    "train": {"certificate", "simulation", "rendering", "JAX", "video"},
}


def main() -> int:
    """Return 0 if all checks pass; the first failure ends the process."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("pythons", nargs="*", default=[sys.executable], help="interpreters to install for")
    options.add_argument("--extras", nargs="*", default=list(EXTRAS), help="only these; '' is no extra")
    options.add_argument("--keep", action="store_true", help="write the sizes to results/install_sizes.csv")
    args = options.parse_args()
    wheel, sdist = build(ROOT / "dist")
    check_wheel(wheel)
    check_sdist(sdist)
    rows = []
    for python in args.pythons:
        for extra in args.extras:
            with tempfile.TemporaryDirectory(prefix="steingate-release-") as folder:
                row = install(Path(folder), python, wheel, extra)
            print(f"python {row['python']}  [{extra}]  {row['packages']} packages  {row['mb']} MB", flush=True)
            rows.append(row)
            if args.keep:
                update_sizes(rows)
    print("all checks passed")
    return 0


def update_sizes(rows: list[dict[str, Any]], path: Path = SIZES) -> None:
    """Replace the rows of the table that were measured again."""
    with open(path, newline="") as file:
        known = {(row["python"], row["extra"]): row for row in csv.DictReader(file)}
    known |= {(row["python"], row["extra"]): row for row in rows}
    order = sorted(known, key=lambda key: (int(key[0].partition(".")[2]), list(EXTRAS).index(key[1])))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, ["python", "extra", "packages", "mb"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[key] for key in order)


def build(folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist, check them with twine, and return their paths."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)], check=True)
    return wheel, sdist


def check_wheel(wheel: Path) -> None:
    """Check that the wheel contains exactly the package, and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (place,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(place).decode()
    tracked = {name.removeprefix("src/") for name in _tracked() if name.startswith("src/")}
    _require(names == tracked, f"the wheel differs from src/: {sorted(names ^ tracked)[:5]}")
    fields = Parser().parsestr(metadata)
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/steingate/__init__.py").read_text())
    _require(version is not None and fields["Version"] == version[1], f"the version is {fields['Version']}")
    urls = fields.get_all("Project-URL", [])
    _require(len(urls) >= 4 and bool(fields["Author"]), "URLs or author are missing")
    _require(fields["License-Expression"] == "Apache-2.0", "the license is missing")
    relative = re.findall(r"\]\((?!https?:|#|mailto:)[^)]*\)", str(fields.get_payload()))
    _require(not relative, f"the readme has links that an index cannot follow: {relative[:3]}")
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    _require(cited is not None and cited[1] == fields["Version"], "CITATION.cff names another version")


def check_sdist(sdist: Path) -> None:
    """Check that the sdist contains all tracked files except hidden ones."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    own = {name for name in _tracked() if not name.startswith(".")}
    missing, strays = own - names, {name for name in names - own if not name.startswith(".")} - {"PKG-INFO"}
    _require(not missing, f"the sdist lacks {sorted(missing)[:5]}")
    _require(not strays, f"the sdist has strays: {sorted(strays)[:5]}")


def install(folder: Path, python: str, wheel: Path, extra: str) -> dict[str, Any]:
    """Install the wheel into a new environment, check it, and return its size."""
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--python", python, str(folder / "venv")], check=True)
    inside = folder / "venv" / "bin" / "python"
    install = [*uv, "pip", "install", "--python", str(inside)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    links = os.environ.get("PIP_FIND_LINKS")
    found = {**os.environ, **({"UV_FIND_LINKS": links} if links else {})}
    if extra == "sb3":  # otherwise the large build for graphics cards is installed
        subprocess.run([*install, TORCH], check=True, env=found)
    name = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([*install, name], check=True, env=found)
    site = next((folder / "venv" / "lib").glob("python3*/site-packages"))
    size = sum(file.lstat().st_size for file in site.rglob("*") if file.is_file())
    row = {
        "python": re.sub(r".*python", "", site.parent.name),
        "extra": extra,
        "packages": len(list(site.glob("*.dist-info"))),
        "mb": round(size / 1e6),
    }
    code = f"import steingate, {EXTRAS[extra]}"
    _run([str(inside), "-W", "error::SyntaxWarning", "-c", code], folder, environment)
    if extra in CHECKS:
        _try_doctor(inside, CHECKS[extra], folder, environment)
    if extra == "plot":
        _try_plot(inside, folder, environment)
    return row


def _try_doctor(python: Path, checks: set[str], folder: Path, environment: dict[str, str]) -> None:
    found = json.loads(_run([str(python), "-m", "steingate", "doctor", "--json"], folder, environment))
    passed = {name for name, (status, _) in found["checks"].items() if status == "ok"}
    _require(passed == checks, f"doctor passed {sorted(passed)}, not {sorted(checks)}: {found['checks']}")


def _try_plot(python: Path, folder: Path, environment: dict[str, str]) -> None:
    costs, plot = folder / "costs.csv", folder / "plot.png"
    costs.write_text("cost\n" + "3\n" * 40)
    command = [str(python), "-m", "steingate", "certify", str(costs), "--limit", "25", "--plot", str(plot)]
    _run(command, folder, environment)
    _require(plot.read_bytes()[:4] == b"\x89PNG", "no figure was written")


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    _require(done.returncode == 0, f"{' '.join(command)} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def _tracked() -> set[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(f"release-check: {message}")


if __name__ == "__main__":
    raise SystemExit(main())
