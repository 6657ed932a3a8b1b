"""Draft folders that differ from the shipped one in their config only; trains and serves nothing.

`python -m specdebug.reference.variants --wrong-layers DIR` writes the draft whose config makes the
engine capture hidden_states [2, 6, 10] where it was trained on [0, 2, 6]. Weights stay as they are.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from specdebug.reference.capture import EAGLE_KEY, LAYER_IDS_KEY

MODELS = Path(__file__).resolve().parent / "models"
TARGET, DRAFT = MODELS / "target", MODELS / "draft"
# Ids as release 0.5.10 reads them for Llama: the output of layer k, so hidden_states[k + 1].
RIGHT_IDS = (-1, 1, 5)
WRONG_IDS = (1, 5, 9)


def write_draft(folder: Path, layer_ids: Sequence[int] | None, *, source: Path = DRAFT) -> Path:
    """Write the draft of `source` with other layer ids into `folder` and return it.

    None leaves the ids out, so that the release's default layers are captured. Files other than
    config.json are hard links where the file system allows it, copies where not.
    """
    config = json.loads((source / "config.json").read_text())
    if layer_ids is None:
        del config[EAGLE_KEY]
    else:
        config[EAGLE_KEY][LAYER_IDS_KEY] = list(layer_ids)
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if file.name != "config.json":
            _link(file, folder / file.name)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    return folder


def _link(source: Path, place: Path) -> None:
    place.unlink(missing_ok=True)
    try:
        os.link(source, place)
    except OSError:
        shutil.copyfile(source, place)


def main(argv: list[str] | None = None) -> int:
    """Write one variant and print its folder."""
    parser = argparse.ArgumentParser(prog="python -m specdebug.reference.variants")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--wrong-layers", type=Path, metavar="DIR", help=f"ids {list(WRONG_IDS)}")
    kind.add_argument("--default-layers", type=Path, metavar="DIR", help="no ids in the config")
    kind.add_argument("--layers", nargs="+", metavar=("DIR", "ID"), help="DIR and ids of your own")
    args = parser.parse_args(argv)
    try:
        if args.wrong_layers:
            written = write_draft(args.wrong_layers, WRONG_IDS)
        elif args.default_layers:
            written = write_draft(args.default_layers, None)
        else:
            written = write_draft(Path(args.layers[0]), [int(k) for k in args.layers[1:]])
    except ValueError as error:
        parser.error(f"--layers takes a folder and whole numbers: {error}")
    except OSError as error:
        sys.stderr.write(f"variants: {error.filename}: {error.strerror}\n")
        return 1
    sys.stdout.write(f"{written}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
