"""Writes static/vendor: the Vega bundle that draws charts in the browser. Run at set-up only.

The bundle comes out of vl_convert, which carries it: no package manager of JavaScript, no network.
"""

from __future__ import annotations

import os
from pathlib import Path

VENDOR_DIR = Path(__file__).resolve().parents[2] / "static" / "vendor"


def write_vega_bundle(folder: Path = VENDOR_DIR) -> Path:
    """Write vega-bundle.js into `folder` and return its path. Raises OSError on a full disk."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vega-bundle.js"
    # Complete or absent: a page must never load half a bundle.
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        # Its types demand the snippet that it takes as optional.
        bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]
        part.write_text(bundle, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


if __name__ == "__main__":
    write_vega_bundle()
