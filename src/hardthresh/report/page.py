"""Common parts of all pages: inline charts, the colours of the style sheet, and the templates."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from hardthresh.core.numbers import number, percent, signed

from .optional import import_optional
from .plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 14.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "hardthresh",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
PIXEL = 1 / 72  # of an inch: the unit of an SVG file of matplotlib is the point
COLOURS = {
    style.INK: "var(--ink)",
    style.MUTED: "var(--muted)",
    style.PALE: "var(--pale)",
    style.GRID: "var(--grid)",
    style.AXIS: "var(--axis)",
    style.DARK: "var(--strong)",
    style.LIGHT: "var(--warm)",
    style.BAND: "var(--band)",
}
"""The colours of charts as variables of the style sheet, which has others for dark screens."""
WIDTHS = {"wide": 760, "narrow": 350}
"""Each chart is drawn for a laptop (and paper) and for a telephone; the style sheet shows one of them."""


def check_installed() -> None:
    """Check that what draws pages is installed.

    Raises
    ------
    MissingDependencyError
        If jinja2 or matplotlib is not installed.
    """
    for package in ("jinja2", "matplotlib"):
        import_optional(package, "the report needs", extra="report")


def environment(**filters: Callable[..., str]) -> Any:
    """Return the environment of the templates of this room, with further filters."""
    jinja2 = import_optional("jinja2", "the report needs", extra="report")
    found = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(part),
    )
    found.filters |= {"number": number, "signed": signed, "percent": percent, "capitalize_first": capitalized}
    found.filters |= filters
    return found


def chart(name: str, draw: Callable[[Axes], object], height: int) -> dict[str, str]:
    """Return a chart as inline SVG elements, one for each of `WIDTHS`."""
    from matplotlib import style as sheets
    from matplotlib.figure import Figure

    drawn = {}
    for variant, width in WIDTHS.items():
        with sheets.context(["default", STYLE]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # the browser's fonts have them
            figure = Figure(figsize=(width * PIXEL, height * PIXEL), layout="constrained")
            draw(figure.subplots())
            drawn[variant] = _inline(figure, prefix=f"{name}-{variant}-")
    return drawn


def _inline(figure: Figure, prefix: str) -> str:
    """Return a figure as an inline SVG element without namespaces: ids get a prefix, group ids become tooltips."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    tips = {artist.get_gid() for artist in figure.findobj() if artist.get_gid() is not None}
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        label = element.attrib.pop("id", None)
        if label in tips and element.tag == "g":
            title = ElementTree.Element("title")
            title.text = label
            element.insert(0, title)
        elif label is not None and element.tag != "g":
            element.set("id", prefix + label)
        for key, value in element.attrib.items():
            link = re.sub(r"^#|(?<=url\()#", f"#{prefix}", value) if key != "style" else value
            short = re.sub(r"(\.\d\d)\d+", r"\1", link)  # a hundredth of a pixel is enough
            element.set(key, re.sub("#[0-9a-f]{6}", lambda found: COLOURS.get(found[0], found[0]), short))
    for metadata in root.findall("metadata"):
        root.remove(metadata)
    root.attrib = {"viewBox": root.attrib["viewBox"], "aria-hidden": "true", "focusable": "false"}
    return ElementTree.tostring(root, encoding="unicode")


def capitalized(sentence: str) -> str:
    """Return a sentence with a capital letter at its beginning."""
    return sentence[:1].upper() + sentence[1:]


def part(name: str) -> str:
    """Return the text of a file of the report."""
    return resources.files(__package__).joinpath(name).read_text("utf-8")
