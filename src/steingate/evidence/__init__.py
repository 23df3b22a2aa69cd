"""Evidence bundles: folders that show what was tested about a policy, and that anybody can verify.

``write_bundle`` tests a policy of a run by a plan and writes the folder; ``verify_bundle`` computes every hash and
every statistic again. Verification needs NumPy alone.
"""

from typing import TYPE_CHECKING, Any

from steingate.evidence.plan import Plan
from steingate.evidence.verify import Verification, verify_bundle

if TYPE_CHECKING:
    from steingate.evidence.write import write_bundle as write_bundle

__all__ = ["Plan", "Verification", "verify_bundle", "write_bundle"]


def __getattr__(name: str) -> Any:
    """Import ``write_bundle``, which needs the extra ``train``, on first use."""
    if name != "write_bundle":
        raise AttributeError(f"module 'steingate.evidence' has no attribute {name!r}")
    from steingate.errors import needs

    with needs("steingate.evidence.write_bundle", "train"):
        from steingate.evidence.write import write_bundle

    return write_bundle
