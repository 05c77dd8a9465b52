"""The file that one project's results are kept in: an SQLite database, which several runs may use at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from torchmemlint.engine.cache.snapshot import Stamp
from torchmemlint.immutable import immutable

FORMAT = 2
MAX_BYTES = 64 * 2**20  # of one project's file; the half that was not used for longest goes when it is larger
MAX_BYTES_OF_ALL = 512 * 2**20  # of all projects' files in one folder
SUFFIX = ".sqlite3"
_DAY = 86_400
_PATIENCE = 5.0  # seconds that another run may hold the file
_TABLES = f"""
    PRAGMA user_version = {FORMAT};
    CREATE TABLE project (root TEXT);
    CREATE TABLE stamps (path TEXT PRIMARY KEY, size INTEGER, changed INTEGER, digest TEXT) WITHOUT ROWID;
    CREATE TABLE results (
        path TEXT, circumstances TEXT, digest TEXT, needs TEXT, result TEXT, used INTEGER, seal TEXT,
        PRIMARY KEY (path, circumstances)
    ) WITHOUT ROWID;
"""


_DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # the latter of what SQLite would say of a damaged schema


class StoreError(Exception):
    """The file cannot be used; the message says why."""


@immutable()
class Row:
    """What was found in one file."""

    path: str
    circumstances: str  # digest of the settings, and of the linter
    digest: str  # of the file's content
    needs: dict[str, Any]  # what else it rests on: see `torchmemlint.engine.cache.results`
    result: Any


class Store:
    """One project's results. To be closed.

    `root` is the project, for a store that is yet to be made. A damaged one is made anew, unless `mend` is false.
    """

    def __init__(self, path: Path, root: Path | None = None, *, mend: bool = True) -> None:
        self.path = path
        self._root = root
        try:
            self._open()
        except _DAMAGE as error:
            if isinstance(error, sqlite3.OperationalError) or not mend:
                raise StoreError(f"{path}: {error}") from None
            self._begin_anew()
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from None

    @property
    def root(self) -> str:
        """The project that the results are of."""
        return str(next(self._ask("SELECT root FROM project"), ("",))[0])

    def stamps(self) -> dict[str, Stamp]:
        """What the file system said of files, by path."""
        rows = self._ask("SELECT path, size, changed, digest FROM stamps")
        return {path: Stamp(size, changed, digest) for path, size, changed, digest in rows}

    def rows(self, circumstances: str) -> dict[str, Row]:
        """What was found under the same circumstances, by path."""
        asked = "SELECT path, digest, needs, result, seal FROM results WHERE circumstances = ?"
        found = {}
        for path, digest, needs, result, seal in self._ask(asked, (circumstances,)):
            with contextlib.suppress(ValueError, TypeError):
                if seal != _seal(path, circumstances, digest, needs, result):
                    continue  # SQLite does not see it where a disk has lost some bits
                found[path] = Row(path, circumstances, digest, json.loads(needs), json.loads(result))
        return found

    def keep(self, rows: Iterable[Row], stamps: Mapping[str, Stamp] = {}, used: Iterable[tuple[str, str]] = ()) -> None:
        """Put in results and stamps; `used` are results (path, circumstances) that were of use today."""
        today = int(time.time()) // _DAY
        with self._writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(*(parts := _parts(row)), today, _seal(*parts)) for row in rows],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO stamps VALUES (?, ?, ?, ?)",
                [(path, stamp.size, stamp.changed, stamp.digest) for path, stamp in stamps.items()],
            )
            connection.executemany(
                "UPDATE results SET used = ? WHERE path = ? AND circumstances = ? AND used < ?",
                [(today, path, circumstances, today) for path, circumstances in used],
            )
        self._bound()

    def size(self) -> int:
        """Bytes; 0 where somebody has removed the file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def count(self) -> int:
        """Results."""
        return int(next(self._ask("SELECT COUNT(*) FROM results"))[0])

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _mark(self.path.parent)
        if self.path.is_symlink():
            raise StoreError(f"{self.path}: it is a link, and so perhaps somebody else's file")
        self._connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        self._connection.execute("PRAGMA trusted_schema = OFF")  # a tree may come with a store
        self._connection.execute("PRAGMA synchronous = OFF")  # a file that a power cut damages is made anew
        if self._version() != FORMAT:
            with self._writing() as connection:
                if self._version() == FORMAT:  # another run has made it in the meantime
                    return
                for table in ("project", "stamps", "results"):
                    connection.execute(f"DROP TABLE IF EXISTS {table}")
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute("INSERT INTO project VALUES (?)", (str(self._root or ""),))

    def _version(self) -> int:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _begin_anew(self) -> None:
        """What is there is no store, or a damaged one."""
        with contextlib.suppress(AttributeError):
            self._connection.close()
        try:
            self.path.unlink()
            self._open()
        except (OSError, *_DAMAGE) as error:
            raise StoreError(f"{self.path}: {error}") from None

    def _ask(self, question: str, given: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(question, given).fetchall()
        except _DAMAGE as error:
            raise StoreError(f"{self.path}: {error}") from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """All or nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except _DAMAGE as error:
            raise StoreError(f"{self.path}: {error}") from None

    def _bound(self) -> None:
        """Keep the file from growing for ever."""
        if self.size() <= MAX_BYTES:
            return
        with self._writing() as connection:
            connection.execute(
                "DELETE FROM results WHERE (path, circumstances) IN (SELECT path, circumstances FROM results"
                " ORDER BY used LIMIT (SELECT COUNT(*) / 2 FROM results))"
            )
            connection.execute("DELETE FROM stamps WHERE path NOT IN (SELECT path FROM results)")
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("VACUUM")


def default_folder() -> Path:
    """Where the stores lie unless something else is asked for."""
    import platformdirs

    return platformdirs.user_cache_path("torchmemlint", appauthor=False)


def store_path(folder: Path, root: Path) -> Path:
    """The store of the project below `root`."""
    name = "".join(letter if letter.isalnum() else "-" for letter in root.name)[:40]
    return folder / f"{name}-{hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()}{SUFFIX}"


def files_in(folder: Path) -> list[Path]:
    """The stores in a folder, the one that was written to last coming first."""
    found = [path for path in folder.glob(f"*{SUFFIX}") if path.is_file()] if folder.is_dir() else []
    return sorted(found, key=_written, reverse=True)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another run has removed it
        return 0.0


def bound_all(folder: Path) -> None:
    """Remove the projects that were not checked for longest where all of them have become too large."""
    total = 0
    for path in files_in(folder):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
            if total > MAX_BYTES_OF_ALL:
                path.unlink()


def _mark(folder: Path) -> None:
    """Tell version control and backups to leave the folder alone, as pytest, mypy and ruff do with theirs."""
    tag = folder / "CACHEDIR.TAG"  # https://bford.info/cachedir/
    if tag.exists():
        return
    for path, text in (
        (tag, "Signature: 8a477f597d28d172789f06886806bc55\n# Results of torchmemlint.\n"),
        (folder / ".gitignore", "*\n"),
    ):
        with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8") as file:  # a link exists, too
            file.write(text)


def _parts(row: Row) -> tuple[str, ...]:
    return row.path, row.circumstances, row.digest, _text(row.needs), _text(row.result)


def _seal(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
