"""Code that a stored run names, and whether this machine may import it.

Run folders are exchanged, and ``config.json`` can name Python objects: an environment, an algorithm, a cost function, a
risk function, a density. Reports, archives and stored policies import none of them. Commands that play episodes
(evaluate, render, resume, grids) import only this package and Gymnasium's own environments, unless the user passes
``trust_code`` or the record has a seal of this machine. The seal is an HMAC-SHA256 over the names, the
options of the environment and its folder, with a random key in the user's configuration folder.
"""

import hmac
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium

from steingate.algorithms import ALGORITHMS
from steingate.errors import RunError
from steingate.storage.files import open_no_link
from steingate.tasks.catalog import TASKS

_KEY_BYTES = 32
_OBJECT = re.compile(r".+:\s*[^\W\d][\w.]*\s*", re.DOTALL)  # module:name or file.py:name
_FILE = re.compile(r"\.py:")


def outside_code(config: Mapping[str, Any]) -> list[str]:
    """Return the names in stored settings that would be imported from outside this package.

    >>> outside_code({"env": "SafetyPointGoal1-v0", "algo": "cpo"})
    []
    >>> outside_code({"env": "mine:Env", "algo": "steingate", "algorithm": {"certificate": {"reference": "mine:Beta"}}})
    ['mine:Env', 'mine:Beta']
    """
    env, algo, wandb = config.get("env"), config.get("algo"), config.get("wandb")
    names = [] if env is None or _is_packaged(str(env)) else [str(env)]
    names += [] if algo is None or str(algo) in ALGORITHMS else [str(algo)]
    names += [] if wandb is None else [f"wandb:{wandb}"]  # a project that would get data of this machine
    names += _names({name: value for name, value in config.items() if name not in ("env", "algo", "wandb", "out")})
    return list(dict.fromkeys(names))


def seal(record: Mapping[str, Any]) -> str | None:
    """Return the seal of a new record; None if it names no outside code, or no key can be stored."""
    if not outside_code(record["config"]):
        return None
    key = _read_key() or _make_key()
    return None if key is None else _digest(key, record)


def is_sealed(record: Mapping[str, Any]) -> bool:
    """Return whether a record was sealed on this machine and names the same code as then."""
    key, found = _read_key(), record.get("seal")
    if key is None or not isinstance(found, str):
        return False
    return hmac.compare_digest(found.encode(), _digest(key, record).encode())


def require_trust(path: str | Path, record: Mapping[str, Any], trust_code: bool, unused: Sequence[str] = ()) -> None:
    """Raise ``RunError`` if a record, the content of ``config.json``, names outside code that the user has not trusted.

    ``unused`` are settings of the record that are not used, such as an environment that the user has replaced.
    """
    names = outside_code({name: value for name, value in record["config"].items() if name not in unused})
    if not names or trust_code or is_sealed(record):
        return
    shown = ", ".join(repr(name[:100]) for name in names[:5]) + (", ..." if len(names) > 5 else "")
    folder = record.get("env_folder")
    where = f" (from {folder[:200]!r})" if isinstance(folder, str) else ""
    raise RunError(
        f"{path} was not started on this machine, and it would import {shown}{where}: read that code, then add "
        "--trust-code, or trust_code=True in Python."
    )


def _is_packaged(env: str) -> bool:
    """Return whether an environment is native or Gymnasium's own, or cannot be imported from its name at all."""
    entry = getattr(gymnasium.registry.get(env), "entry_point", None)
    own = isinstance(entry, str) and entry.startswith(("gymnasium.envs.", "steingate."))
    python = env.startswith("python:") and not _FILE.search(env)
    return own or env.removeprefix("steingate/") in TASKS or python


def _names(value: Any, key: str = "") -> Iterator[str]:
    """Yield the texts in a tree of settings that name Python objects, and every cost function."""
    if isinstance(value, str):
        if key == "cost" or _OBJECT.fullmatch(value):
            yield value
    elif isinstance(value, Mapping | list | tuple):
        for name, item in value.items() if isinstance(value, Mapping) else ((key, item) for item in value):
            yield from _names(item, name)


def _digest(key: bytes, record: Mapping[str, Any]) -> str:
    config = record["config"]
    content = [outside_code(config), config.get("env_options"), record.get("env_folder")]
    return hmac.new(key, json.dumps(content, sort_keys=True).encode(), "sha256").hexdigest()


def _key_file() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "steingate" / "key"


def _read_key() -> bytes | None:
    """Return the key of this user; None if there is none, or if others could have read or written it."""
    with suppress(OSError, RuntimeError), open_no_link(_key_file(), "rb") as file:  # no home: RuntimeError
        status = os.fstat(file.fileno())
        private = os.name != "posix" or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)
        if stat.S_ISREG(status.st_mode) and private and status.st_size == _KEY_BYTES:
            return file.read()
    return None


def _make_key() -> bytes | None:
    """Store a new key, unless another process has just done so, and return the stored one."""
    with suppress(OSError, RuntimeError):
        file = _key_file()
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent) as temporary:  # has mode 0600
            temporary.write(os.urandom(_KEY_BYTES))
            temporary.flush()
            with suppress(FileExistsError):
                os.link(temporary.name, file)
    return _read_key()
