"""The check of the built documentation finds what it looks for: a small site with one fault of each kind."""

import shutil
import subprocess
from pathlib import Path

import pytest

from levels import only_at
from patience import PATIENCE

BROWSER = Path(__file__).parents[1] / "docs" / "browser"

GOOD = """<!doctype html><html lang="en"><head><title>A page</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">
</head><body><main><h1 id="top">A page</h1>%s</main></body></html>"""

FAULTS = {
    '<p><a href="nowhere.html">link</a></p>': "the link nowhere.html leads nowhere",
    '<p><a href="good.html#bottom">link</a></p>': "no anchor for the link good.html#bottom",
    "<script>nobody()</script>": "nobody is not defined",
    '<script>console.error("wrong")</script>': "wrong",
    '<script src="http://example.org/x.js"></script>': "loads http://example.org/x.js",
    '<div style="width: 700px">wide</div>': "wider than the screen: 7",
    '<div style="overflow: hidden"><pre style="width: 700px">wide</pre></div>': "cut off: pre",
    '<p style="color: #999">pale</p>': "color-contrast",
    "<style>@media (prefers-color-scheme: dark) { p { color: #999 } }</style><p>pale</p>": "(1200 px, dark)",
    '<img src="good.html">': "image-alt",
}


def check(folder):
    command = ["node", BROWSER / "check.mjs", folder]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


@only_at("pairs")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed (Debian package chromium)")
@pytest.mark.skipif(not (BROWSER / "node_modules").is_dir(), reason="make check-docs has not installed its packages")
def test_each_kind_of_fault_is_found(tmp_path):
    good = GOOD % '<p><a href="#top">up</a></p><div style="overflow: auto" tabindex="0"><pre>code</pre></div>'
    (tmp_path / "good.html").write_text(good, encoding="utf-8")
    alone = check(tmp_path)
    assert (alone.returncode, alone.stdout.splitlines()[-1]) == (0, "0 found")
    for number, fault in enumerate(FAULTS):
        (tmp_path / f"fault{number}.html").write_text(GOOD % fault, encoding="utf-8")
    run = check(tmp_path)
    assert run.returncode == 1
    for number, (fault, message) in enumerate(FAULTS.items()):
        lines = [line for line in run.stdout.splitlines() if line.startswith(f"fault{number}.html: ")]
        assert [line for line in lines if message in line], (fault, run.stdout)
    assert "good.html: " not in run.stdout
