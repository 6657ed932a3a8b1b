"""The reference engine: a small EAGLE-3 in torch that really runs; not for real models."""

NAME = "specdebug-reference"
NOTE = (
    "specdebug reference engine: a tiny model on the CPU behind SGLang's interface; "
    "its figures are not a GPU's"
)
