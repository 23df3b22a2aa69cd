"""Look the built site over: ``python docs/check_site.py build/site``, the last part of ``make docs``.

Every public name must be in the reference, every link inside the site must lead somewhere, and no page may
load anything from a network.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import steingate

# Elements whose address is loaded with the page, not when a reader follows it.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """What a page links to, loads, and can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element names."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found:
            self.loads.append(found[LOADED[tag]])


def problems(site: Path) -> list[str]:
    """Return what is wrong with a site, one sentence each."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path.resolve(): Page(path) for path in files}
    documented = {anchor for page in pages.values() for anchor in page.anchors}
    found = [f"steingate.{name} is not in the reference" for name in missing(documented)]
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for address in page.loads:
            if urlsplit(address).netloc:
                found.append(f"{name} loads {address}")
        for address in [*page.links, *page.loads]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{name} leads to {address}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name} leads to {address}, which has no such place")
    for path in site.rglob("*.css"):
        for address in re.findall(r"(?:@import|url\()\s*['\"]?((?:https?:)?//[^'\")\s]+)", path.read_text()):
            found.append(f"{path.relative_to(site)} loads {address}")
    return found


def missing(documented: set[str]) -> list[str]:
    """Return the public names that are not among those documented."""
    return [name for name in steingate.__all__ if f"steingate.{name}" not in documented]


def main() -> int:
    """Print the problems of a site; return 1 if there are some."""
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or "the site is whole: names, links, nothing from a network")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
