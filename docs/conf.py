"""The documentation site: ``make docs`` builds it from the whole repository, so that links work in both.

The source folder is the repository itself; the pages are those of ``include_patterns``.
"""

import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import steingate  # noqa: E402

project = "steingate"
author = "the steingate developers"
copyright = "the steingate developers; Apache-2.0"
version = release = steingate.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/*/*.md",
    "results/README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".venv*", ".git", "build", "dist", "runs", "src", "tests"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# Pages: links to headings are checked as well as links to files.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "attrs_block", "dollarmath"]
highlight_language = "none"
# A page may begin below its first level; two classes may have attributes of one name.
suppress_warnings = ["myst.header", "ref.python"]

# Reference: from docstrings, in the order of the source.
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_mock_imports = ["stable_baselines3"]  # its page needs the base class, not torch
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_math_renderer = "mathml"  # equations need neither scripts nor a network
html_theme = "pydata_sphinx_theme"
html_title = f"steingate {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {
    "docs/index": [],
    "docs/install": [],
    "docs/reproduction": [],
    "docs/results": ["sidebar-nav-bs"],
}
html_theme_options = {
    "logo": {"text": "steingate"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "back_to_top_button": False,
}


def skip_field_aliases(app, what, name, obj, skip, options):
    """Leave out what Python says of the fields of a named tuple ("Alias for field number 0")."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def visit_math(translator, node):
    """Write an equation as MathML, which browsers render themselves."""
    if isinstance(node, nodes.math):
        translator.body.append(convert(node.astext()))
    else:
        translator.body.append(f'<div class="equation">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def link_images(app, doctree):
    """Let each image be a link to its file, where phones can enlarge it: Sphinx does so if a width is given."""
    for image in doctree.findall(nodes.image):
        image["width"] = "100%"


def setup(app):
    """Connect the above."""
    app.connect("doctree-read", link_images)
    app.connect("autodoc-skip-member", skip_field_aliases)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
