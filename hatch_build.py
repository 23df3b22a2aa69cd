"""Build hook: relative links and images of README.md become absolute in the package metadata."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

HOME = "https://github.com/steingate/steingate"
RAW = "https://raw.githubusercontent.com/steingate/steingate"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def absolute(text: str, tag: str) -> str:
    """Return Markdown with absolute links and images of a tag of the repository."""

    def address(found: re.Match[str]) -> str:
        image, label, target = found.groups()
        base = f"{RAW}/{tag}" if image else f"{HOME}/blob/{tag}"
        return f"{image}[{label}]({base}/{target})"

    return _LINK.sub(address, text)


class ReadmeHook(MetadataHookInterface):
    """Add the README to the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field ``readme``."""
        root = Path(self.root)
        source = (root / "src" / "steingate" / "__init__.py").read_text(encoding="utf-8")
        found = re.search(r'^__version__ = "([^"]+)"', source, re.MULTILINE)
        if found is None:
            raise ValueError("src/steingate/__init__.py states no version.")
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, f"v{found[1]}")}
