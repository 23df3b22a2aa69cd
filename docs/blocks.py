"""The parts of pages that are written from files: between ``<!-- name -->`` and ``<!-- end -->``."""

from collections.abc import Mapping

END = "<!-- end -->"


def fill(page: str, blocks: Mapping[str, str]) -> str:
    """Return a page with its named blocks written anew; each must have exactly one place."""
    for name, text in blocks.items():
        start = f"<!-- {name} -->\n"
        if page.count(start) != 1:
            raise ValueError(f"The page has {page.count(start)} places for the block {name!r}, not one.")
        before, _, rest = page.partition(start)
        page = f"{before}{start}{text}\n{rest[rest.index(END) :]}"
    return page
