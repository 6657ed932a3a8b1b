"""GPU figures over a run: the columns, their compact file, and what they say of the measured part;
it asks no GPU."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

FILE, KIND = "gpu-samples.json.gz", "gpu-samples"  # in a run's folder, and as evidence
FORMAT = 1
# Two hours at 1 Hz. A longer run is thinned in pairs, so that the file stays small.
MOST_TIMES = 7200
# A file that unpacks to more was not written by us.
LARGEST = 256 << 20

# Bits of NVML's clocks event reasons that mean that the GPU could not run as fast as it would.
HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x8, 0x20, 0x40, 0x80
POWER_CAP = 0x4
REASONS: Mapping[int, str] = {
    SW_THERMAL: "software thermal slowdown",
    HW_THERMAL: "hardware thermal slowdown",
    POWER_BRAKE: "hardware power brake",
    HW_SLOWDOWN: "hardware slowdown",
    POWER_CAP: "software power cap",
}
# The power cap holds back most GPUs under full load and is no fault.
THROTTLING = HW_SLOWDOWN | SW_THERMAL | HW_THERMAL | POWER_BRAKE


class Sample(NamedTuple):
    """One GPU at one moment; None where it does not tell. util in percent of the last sampling
    period, memory_mb in MiB, clocks in MHz, temperature in degrees Celsius, reasons as NVML's bits,
    ecc as uncorrected errors since the driver was loaded."""

    util: int | None
    memory_mb: int | None
    power_w: int | None
    sm_mhz: int | None
    memory_mhz: int | None
    temp_c: int | None
    reasons: int | None
    ecc: int | None


NOTHING = Sample(None, None, None, None, None, None, None, None)
FIELDS = Sample._fields


@dataclass(frozen=True)
class GpuColumn:
    """One GPU: who it is, and a list per field as long as the times. lost_at: seconds since the
    epoch, None for a GPU that answered to the end."""

    index: int
    uuid: str
    name: str
    columns: Mapping[str, Sequence[int | None]]
    lost_at: float | None = None


@dataclass(frozen=True)
class GpuSamples:
    """Times in seconds since the epoch; every is the seconds between two as they are kept."""

    times: Sequence[float]
    gpus: Sequence[GpuColumn]
    every: float = 1.0

    def packed(self) -> bytes:
        """The file's bytes: gzipped JSON, the same for the same samples."""
        start = self.times[0] if self.times else 0.0
        data = {
            "format": FORMAT,
            "start": start,
            "every": self.every,
            "t": [round(t - start, 2) for t in self.times],
            "gpus": [
                {
                    "index": gpu.index,
                    "uuid": gpu.uuid,
                    "name": gpu.name,
                    "lost_at": gpu.lost_at,
                    **{name: list(gpu.columns[name]) for name in FIELDS},
                }
                for gpu in self.gpus
            ],
        }
        import gzip  # late: a check without GPU samples starts sooner

        return gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)

    @classmethod
    def unpacked(cls, data: bytes) -> GpuSamples:
        """The inverse of `packed`. Raises ValueError for anything else."""
        try:
            import gzip

            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                text = file.read(LARGEST + 1)
            if len(text) > LARGEST:
                raise ValueError("too large")
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise ValueError(f"format {found['format']!r}")
            times = [found["start"] + t for t in found["t"]]
            gpus = [_column(each, len(times)) for each in found["gpus"]]
            return cls(times, gpus, float(found["every"]))
        except (OSError, EOFError, KeyError, TypeError, ValueError, RecursionError) as problem:
            raise ValueError(f"no GPU samples: {problem}") from None


def _column(found: Mapping[str, Any], length: int) -> GpuColumn:
    columns = {name: found[name] for name in FIELDS}
    if any(len(column) != length for column in columns.values()):
        raise ValueError("columns of different length")
    return GpuColumn(found["index"], found["uuid"], found["name"], columns, found["lost_at"])


# ---- what the samples say ------------------------------------------------------------------------


@dataclass(frozen=True)
class GpuSummary:
    """One GPU over the measured repeats alone. samples: how many moments stand behind the figures;
    None: the GPU does not tell.

    throttled: reason in words -> moments with it, the power cap not among them; throttled_samples:
    moments with at least one of them; power_capped_samples: moments at the power cap. new_ecc:
    uncorrected memory errors from the first sample of the run to its last.
    """

    index: int
    uuid: str
    name: str
    samples: int
    util_mean: float | None
    memory_mb_max: int | None
    power_w_mean: float | None
    power_w_max: int | None
    sm_mhz_mean: float | None
    sm_mhz_max: int | None
    temp_c_mean: float | None
    temp_c_max: int | None
    throttled: Mapping[str, int]
    throttled_samples: int
    power_capped_samples: int
    new_ecc: int | None
    lost: bool

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GpuSummary:
        """The inverse of `as_json`. Raises TypeError where the data is no summary."""
        return cls(**data)


def summarise(found: GpuSamples, spans: Iterable[tuple[float, float]]) -> list[GpuSummary]:
    """A summary per GPU of the samples within `spans`, seconds since the epoch."""
    within = list(spans)
    rows = [n for n, t in enumerate(found.times) if any(a <= t <= b for a, b in within)]
    return [_summary(gpu, rows) for gpu in found.gpus]


def _summary(gpu: GpuColumn, rows: Sequence[int]) -> GpuSummary:
    def known(name: str) -> list[int]:
        column = gpu.columns[name]
        return [value for row in rows if (value := column[row]) is not None]

    def mean(name: str) -> float | None:
        values = known(name)
        return round(sum(values) / len(values), 1) if values else None

    def most(name: str) -> int | None:
        return max(known(name), default=None)

    reasons = known("reasons")
    ecc = [value for value in gpu.columns["ecc"] if value is not None]
    counts = {
        words: count
        for bit, words in REASONS.items()
        if bit & THROTTLING and (count := sum(1 for value in reasons if value & bit))
    }
    told = [n for n in rows if any(gpu.columns[name][n] is not None for name in FIELDS)]
    return GpuSummary(
        index=gpu.index,
        uuid=gpu.uuid,
        name=gpu.name,
        samples=len(told),
        util_mean=mean("util"),
        memory_mb_max=most("memory_mb"),
        power_w_mean=mean("power_w"),
        power_w_max=most("power_w"),
        sm_mhz_mean=mean("sm_mhz"),
        sm_mhz_max=most("sm_mhz"),
        temp_c_mean=mean("temp_c"),
        temp_c_max=most("temp_c"),
        throttled=counts,
        throttled_samples=sum(1 for value in reasons if value & THROTTLING),
        power_capped_samples=sum(1 for value in reasons if value & POWER_CAP),
        new_ecc=ecc[-1] - ecc[0] if ecc else None,
        lost=gpu.lost_at is not None,
    )


def thinned(found: GpuSamples) -> GpuSamples:
    """Half as many moments, each merged from two neighbours; an odd last one stays as it is."""
    gpus = []
    for gpu in found.gpus:
        columns = {
            name: [merged(name, column[n : n + 2]) for n in range(0, len(column), 2)]
            for name, column in gpu.columns.items()
        }
        gpus.append(GpuColumn(gpu.index, gpu.uuid, gpu.name, columns, gpu.lost_at))
    return GpuSamples(list(found.times[::2]), gpus, found.every * 2)


def merged(name: str, values: Sequence[int | None]) -> int | None:
    """One value of a field for several moments: the mean of what is measured, all the reasons that
    one of them had, the last count of errors; None where none is known."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if name == "reasons":
        return reduce(or_, known)
    if name == "ecc":
        return known[-1]
    return round(sum(known) / len(known))
