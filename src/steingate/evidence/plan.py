"""The plan of a test, ``plan.toml``: what will be claimed and how it is tested, fixed before the first episode."""

import json
import tomllib
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from math import inf
from typing import Any, Self

from steingate.errors import InputError, check_interval
from steingate.escaping import printable

SCHEMA_VERSION = 1
MAX_EPISODES = 100_000
_MAX_DOMAIN = 4000


def now() -> datetime:
    """Return the time of this machine's clock in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Plan:
    """Claim and test: with error probability ``delta``, P(episode cost > limit) <= budget."""

    limit: float
    budget: float = 0.1
    delta: float = 0.05  # error probability of all evaluations of the run together
    episodes: int = 300  # number of test episodes; with until_certified their largest number
    until_certified: bool = False  # whether an anytime-valid monitor ends the test as soon as it has decided
    domain: str = ""  # where, and under which conditions, the policy will be used
    created: datetime = field(default_factory=now)  # when the plan was fixed

    def __post_init__(self) -> None:
        check_interval("limit of the plan", self.limit, 0.0, inf, "[)")
        for name in ("budget", "delta"):
            check_interval(f"{name} of the plan", getattr(self, name), 1e-9, 1.0 - 1e-9, "[]")
        check_interval("episodes of the plan", self.episodes, 1, MAX_EPISODES, "[]")
        if (type(self.episodes), type(self.until_certified), type(self.domain)) != (int, bool, str):
            raise InputError("The plan needs episodes as an integer, until_certified as true or false, domain as text.")
        if not isinstance(self.created, datetime) or self.created.tzinfo is None:
            raise InputError("The plan needs created as a time with its offset from UTC.")
        object.__setattr__(self, "domain", printable(" ".join(self.domain.split()), _MAX_DOMAIN))
        for name in ("limit", "budget", "delta"):
            object.__setattr__(self, name, float(getattr(self, name)))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self), "created": self.created.isoformat()}

    def to_toml(self) -> str:
        """Return the text of ``plan.toml``."""
        values = {name: json.dumps(value, ensure_ascii=False) for name, value in self.to_dict().items()}
        values["created"] = self.created.isoformat()
        lines = [f"{name} = {value}" for name, value in values.items()]
        return "\n".join(("# Plan of a test, fixed before its first episode.", *lines, ""))

    @classmethod
    def from_toml(cls, content: bytes, source: str) -> Self:
        """Return the plan in the content of a ``plan.toml``; InputError if it is none."""
        try:
            found = tomllib.loads(content.decode())
        except (ValueError, RecursionError) as error:
            raise InputError(f"{source} is not valid TOML: {printable(error, 200)}.") from None
        if found.pop("schema_version", None) != SCHEMA_VERSION:
            raise InputError(f"{source} is no plan of schema version {SCHEMA_VERSION}: use `steingate evidence plan`.")
        if set(found) != {item.name for item in fields(cls)}:
            raise InputError(f"{source} has other entries than a plan: use `steingate evidence plan`.")
        return cls(**found)
