"""How many GPUs a launch command takes on one host; it knows no machine."""

from __future__ import annotations

from collections.abc import Sequence

from specdebug.sglang.flags import LaunchCommand, parse_argv


def command_of(server_args: Sequence[str]) -> LaunchCommand:
    """An SGLang command from its own flags, without interpreter."""
    return parse_argv(("python", "-m", "sglang.launch_server", *server_args))


def gpus_needed(command: LaunchCommand) -> int:
    """One GPU for each rank on a host: tensor times pipeline parallel over the nodes, times data
    parallel unless attention alone is data parallel; 0 for another device than CUDA.

    --gpu-id-step leaves GPUs out, which are needed all the same.
    """

    def number(name: str) -> int:
        value = command.value(name)
        return value if isinstance(value, int) and value > 0 else 1

    device = command.value("device")
    if isinstance(device, str) and device != "cuda":
        return 0
    count = max(1, number("tp_size") * number("pp_size") // number("nnodes"))
    if not command.value("enable_dp_attention"):
        count *= number("dp_size")
    return (count - 1) * number("gpu_id_step") + 1
