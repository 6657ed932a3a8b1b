"""The driver's raw answers about one GPU, each question by itself; a refusal is an answer too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml

# Beyond what a worker asks: what it could ask, to see what a card has.
_QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "name": pynvml.nvmlDeviceGetName,
    "memory_v2": lambda h: _fields(pynvml.nvmlDeviceGetMemoryInfo(h, pynvml.nvmlMemory_v2)),
    "memory_v1": lambda h: _fields(pynvml.nvmlDeviceGetMemoryInfo(h)),
    "mig": pynvml.nvmlDeviceGetMigMode,
    "processes": lambda h: [_fields(p) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(h)],
    "utilisation": lambda h: _fields(pynvml.nvmlDeviceGetUtilizationRates(h)),
    "power_mw": pynvml.nvmlDeviceGetPowerUsage,
    "power_limit_mw": pynvml.nvmlDeviceGetEnforcedPowerLimit,
    "energy_mj": pynvml.nvmlDeviceGetTotalEnergyConsumption,
    "sm_mhz": lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM),
    "memory_mhz": lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_MEM),
    "most_sm_mhz": lambda h: pynvml.nvmlDeviceGetMaxClockInfo(h, pynvml.NVML_CLOCK_SM),
    "most_memory_mhz": lambda h: pynvml.nvmlDeviceGetMaxClockInfo(h, pynvml.NVML_CLOCK_MEM),
    "temperature_c": lambda h: pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU),
    "slowdown_at_c": lambda h: pynvml.nvmlDeviceGetTemperatureThreshold(
        h, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
    ),
    "reasons": pynvml.nvmlDeviceGetCurrentClocksEventReasons,
    "reasons_before_535": pynvml.nvmlDeviceGetCurrentClocksThrottleReasons,
    "reasons_it_can_tell": pynvml.nvmlDeviceGetSupportedClocksEventReasons,
    "ecc_mode": pynvml.nvmlDeviceGetEccMode,
    "ecc_uncorrected": lambda h: pynvml.nvmlDeviceGetTotalEccErrors(
        h, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    ),
    "ecc_corrected": lambda h: pynvml.nvmlDeviceGetTotalEccErrors(
        h, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC
    ),
    "persistence": pynvml.nvmlDeviceGetPersistenceMode,
    "compute_mode": pynvml.nvmlDeviceGetComputeMode,
    "compute_capability": pynvml.nvmlDeviceGetCudaComputeCapability,
    "pcie_generation": pynvml.nvmlDeviceGetCurrPcieLinkGeneration,
    "pcie_width": pynvml.nvmlDeviceGetCurrPcieLinkWidth,
    "nvlink_0": lambda h: pynvml.nvmlDeviceGetNvLinkState(h, 0),
    "fan_percent": pynvml.nvmlDeviceGetFanSpeed,
    "performance_state": pynvml.nvmlDeviceGetPerformanceState,
}


def _fields(answer: Any) -> Any:
    names = [field[0] for field in getattr(answer, "_fields_", [])]
    if not names:
        names = [name for name in vars(answer) if not name.startswith("_")]
    return {name: getattr(answer, name) for name in names}


def all_of(handle: Any) -> dict[str, Any]:
    """Name of the question to the answer, or to {"refused": words, "code": NVML's number}."""
    found: dict[str, Any] = {}
    for name, question in _QUESTIONS.items():
        try:
            found[name] = question(handle)
        except pynvml.NVMLError as problem:
            found[name] = {"refused": str(problem), "code": problem.value}
    return found
