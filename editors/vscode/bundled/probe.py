"""Tell the extension, in one line of JSON, what this interpreter is and what torchmemlint it has.

Written so that every Python that people still have can run it, because a message is better than a traceback.
"""

import json
import platform
import sys
import sysconfig


def version_of(name):
    """The version of an installed distribution, or None."""
    try:
        from importlib import metadata
    except ImportError:  # Python 3.7 and older: too old anyhow
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def has_server():
    """Whether the installed torchmemlint is new enough to have a language server; it is not imported for that."""
    from importlib import util

    try:
        return util.find_spec("torchmemlint.server") is not None
    except (ImportError, ValueError):
        return False


def main():
    """Print what there is to know."""
    found = version_of("torchmemlint") if sys.version_info >= (3, 8) else None
    print(
        json.dumps(
            {
                "version": list(sys.version_info[:3]),
                "implementation": sys.implementation.name if sys.version_info >= (3,) else "cpython",
                "freeThreaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
                "executable": sys.executable,
                "machine": platform.machine(),
                "torchmemlint": found,
                "server": found is not None and has_server(),
                "pygls": version_of("pygls") if found is not None else None,
            }
        )
    )


if __name__ == "__main__":
    main()
