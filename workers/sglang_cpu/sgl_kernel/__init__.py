"""Stands in for the wheel of CUDA kernels; whatever else SGLang asks of it is an ImportError."""

__version__ = "0.0.0+none"
