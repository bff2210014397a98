"""Draw the picture of the README by its own first lines: ``python -m docs.figures.readme``."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def draw(path: Path) -> None:
    """Run the first example of the README, and save its figure with the code that drew it."""
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    names["figure"].savefig(path, dpi=110, metadata={"Description": code})


if __name__ == "__main__":
    draw(ROOT / "docs" / "_static" / "readme.png")
