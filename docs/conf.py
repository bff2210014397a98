"""Sphinx settings. The build fails on a warning, and warns of every public name that the reference lacks."""

import csv
import inspect
import re
from importlib import import_module
from math import inf
from pathlib import Path
from statistics import median

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.rst import escape
from sphinx_gallery.sorting import ExplicitOrder

import hardthresh
from hardthresh.cli.reproduce import load_runner

project = "hardthresh"
author = "the hardthresh developers"
copyright = f"2026, {author}"
version = release = hardthresh.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "browser"]
toc_object_entries_show_parents = "hide"  # "fit()" in the list of sections, not "SparseLinearRegression.fit()"
nitpicky = True  # our own public names must lead somewhere
nitpick_ignore_regex = [
    ("py:.*", r"(?!hardthresh\.).*"),  # links to other packages need a network
    ("py:.*", r"hardthresh\.\w+(\.[a-z_]+)+\.[A-Z]\w+"),  # a class by its file, as autodoc shows a class attribute
]

html_theme = "pydata_sphinx_theme"
html_title = "hardthresh"
html_theme_options = {
    "collapse_navigation": True,  # a page of the reference lists its own sub-package, not all names of the package
    "navigation_with_keys": False,
    "show_toc_level": 2,
}
html_sidebars = {page: [] for page in ("index", "getting_started", "papers", "changelog")}
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_js_files = [("house.js", {"defer": "defer"})]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}  # light or dark as the reader's system
html_math_renderer = "mathml"

autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # numpydoc's parameter lists already say it
numpydoc_show_class_members = False  # the class template lists them
numpydoc_xref_param_type = False

HEADERS = [Path(__file__).parents[1] / "examples" / folder / "GALLERY_HEADER.rst" for folder in ("", "methods")]
PAGES = [name for header in HEADERS for name in re.findall(r"plot_\w+\.py", header.read_text(encoding="utf-8"))]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "within_subsection_order": ExplicitOrder(PAGES),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
}


def skip_inherited_plumbing(app, what, name, obj, skip, options):
    """Leave out what every scikit-learn estimator inherits and explains by pages of scikit-learn's own guide."""
    return skip or ":ref:" in (inspect.getdoc(obj) or "")


def report_missing_names(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each name in the ``__all__`` of a room that no page of the reference describes."""
    documented = env.domains["py"].objects
    rooms = [name for name in hardthresh.__all__ if inspect.ismodule(getattr(hardthresh, name))]
    for room in rooms:
        for name in import_module(f"hardthresh.{room}").__all__:
            if f"hardthresh.{room}.{name}" not in documented:
                logging.getLogger(__name__).warning("hardthresh.%s.%s is missing in docs/api.rst", room, name)


def write_claims(app: Sphinx) -> None:
    """Write a table of the claims of each paper, and on how many seeds they are true; docs/papers.rst includes them."""
    papers, generated = app.srcdir.parent / "papers", app.srcdir / "generated"
    library = load_runner(papers).Library(papers)
    generated.mkdir(exist_ok=True)
    for paper in library.papers():
        claims = [(item, claim) for item in library.items(paper) for claim in library.claims(paper, item)]
        with (generated / f"claims_{paper}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([f"``{item}``", *map(escape, described(claim))] for item, claim in claims)


def described(claim) -> list[str]:
    """Return the cells of a claim: in words and numbers, where it is made, and what the seeds say of it."""
    cells = [claim.claim, claim.inequality, claim.source, claim.verdict]
    if not claim.spread:
        return [*cells, "not yet"]
    numbers = min(claim.spread), median(claim.spread), max(claim.spread)
    shown = ["not reached" if number == inf else f"{number:.3g}" for number in numbers]
    return [*cells, f"{sum(map(claim.is_true, claim.spread))} of {len(claim.spread)}", *shown]


def write_mathml(translator, node):
    """Write a formula as MathML, which browsers read without a script from the network."""
    translator.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def open_entry(translator, node):
    """Open a cell of a table; an empty one of the head is no header."""
    type(translator).visit_entry(translator, node)
    if not node.children and "</th>" in translator.context[-1]:
        translator.body[-1] = translator.body[-1].replace("<th", "<td", 1)
        translator.context[-1] = translator.context[-1].replace("</th>", "</td>")


def setup(app: Sphinx) -> None:
    app.add_node(nodes.entry, override=True, html=(open_entry, None))
    app.add_html_math_renderer("mathml", inline_renderers=(write_mathml, None), block_renderers=(write_mathml, None))
    app.connect("builder-inited", write_claims)
    app.connect("autodoc-skip-member", skip_inherited_plumbing)
    app.connect("env-check-consistency", report_missing_names)
