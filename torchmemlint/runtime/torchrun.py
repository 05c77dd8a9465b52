"""What torchrun tells the processes of a run on one machine. Knows nothing of torch."""

from __future__ import annotations

import socket

_HERE = "127.0.0.1"


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as one:
        one.bind((_HERE, 0))
        port: int = one.getsockname()[1]
        return port


def environment_of(rank: int, processes: int, port: int) -> dict[str, str]:
    """The environment that torchrun gives the process of a rank, `port` being that at which the ranks meet."""
    numbers = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "ROLE_RANK": rank,
        "GROUP_RANK": 0,
        "WORLD_SIZE": processes,
        "LOCAL_WORLD_SIZE": processes,
        "ROLE_WORLD_SIZE": processes,
        "GROUP_WORLD_SIZE": 1,
        "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
    }
    names = {
        "MASTER_ADDR": _HERE,
        "ROLE_NAME": "default",
        "TORCHELASTIC_RUN_ID": "torchmemlint",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
    return {name: str(number) for name, number in numbers.items()} | names
