import gzip
import io
import json
from pathlib import Path

import pytest

from specdebug.diagnosis import content
from specdebug.diagnosis.facts import Input

LINE = "[2026-05-06 09:10:00 TP0] Load weight begin. avail mem=77.10 GB"


def test_what_is_packed_is_read_unpacked_whatever_it_is() -> None:
    given = Input("notes.json.gz", gzip.compress(b'{"concurrency": 4}'))
    assert json.loads(content.text(given)) == {"concurrency": 4}


def test_what_unpacks_to_more_than_fits_is_refused_and_not_read_to_its_end() -> None:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as file:
        for _ in range(80):
            file.write(b" " * (1 << 20))
    with pytest.raises(content.Unusable, match="unpacks to more than 64 MiB"):
        content.whole(Input("bomb.gz", packed.getvalue()))


def test_a_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(content.Unusable, match="name the files in it"):
        content.head(Input("folder", tmp_path))


def test_a_large_input_has_no_small_text() -> None:
    assert content.small_text(Input("a", b"x" * content.HEAD)) is not None
    assert content.small_text(Input("a", b"x" * (content.HEAD + 1))) is None
    assert content.small_text(Input("a.gz", gzip.compress(b"x" * (content.HEAD + 1)))) is None


@pytest.mark.parametrize("key", ["log", "message", "msg"])
def test_the_objects_of_a_log_collector_are_taken_off_line_by_line(key: str) -> None:
    rows = [json.dumps({key: f"{LINE} {i}\n", "time": "2026-05-06T09:10:00Z"}) for i in range(3)]
    plain = content.text(content.unwrapped(Input("a", "\n".join([*rows, "bare"]).encode())))
    assert plain.split("\n") == [f"{LINE} 0", f"{LINE} 1", f"{LINE} 2", "bare"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"message": "a", "output_throughput": 3.0}),  # no collector's key beside it
        json.dumps({"time": 3, "output_throughput": 3.0}),
        '{"log": broken',
        LINE,
        "",
    ],
)
def test_other_objects_and_text_stay_as_they_are(text: str) -> None:
    given = Input("a", text.encode())
    assert content.unwrapped(given) is given
