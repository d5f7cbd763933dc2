"""Error messages in the terms of a node: parameters instead of options of the command line."""

from __future__ import annotations

import re

from ur_energy_model.nodes.parameters import NODES

OPTIONS: dict[str, tuple[str, ...]] = {
    "--host": ("robot_ip", "host"),
    "--robot": ("robot_model",),
    "--model": ("model_file",),
    "--validate": ("validation_bags",),
    "--output": ("output",),
    "--friction": ("friction",),
    "--power-model": ("power_model",),
    "--fields": ("fields",),
    "--rate": ("rtde_rate",),
    "--method": ("method",),
    "--state-file": ("state_file",),
    "--foxglove": ("foxglove",),
    "--prometheus": ("prometheus",),
    "--mqtt": ("mqtt",),
    "--opcua": ("opcua",),
    "--credentials": ("credentials",),
    "--allow-network": ("allow_network",),
}
"""Parameters that say the same as an option; the first one that a node has."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_COMMAND = re.compile(r"(ur_energy \w+ |identify: )[^;,)']*")


def explain(error: object, node: str) -> str:
    """Text of an error, with options of the command line replaced by parameters of the node.

    What follows the name of a command is left as it is, and so are options without a parameter.

    Args:
        error: an exception or a text.
        node: key of NODES.
    """
    names = {entry.name for entry in NODES[node]}

    def parameter(match: re.Match[str]) -> str:
        own = (name for name in OPTIONS.get(match[0], ()) if name in names)
        return next(own, match[0])

    text, out, start = str(error), [], 0
    for command in _COMMAND.finditer(text):
        out += [_OPTION.sub(parameter, text[start : command.start()]), command[0]]
        start = command.end()
    return "".join([*out, _OPTION.sub(parameter, text[start:])])
