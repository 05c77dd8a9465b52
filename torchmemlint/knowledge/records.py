"""Records: what gives a program one thing after the other of what lies on disk, and what makes plain Python objects."""

from __future__ import annotations

DOCUMENTS = frozenset("json.load json.loads ujson.load orjson.loads simplejson.load".split())
FILES = frozenset("open io.open codecs.open gzip.open".split())
# Functions and methods that give all there are of something: files of a folder, lines, rows of a table.
MANY = frozenset("os.listdir os.walk os.scandir glob.glob glob.iglob".split())
MANY_METHODS = frozenset("iterdir glob rglob readlines splitlines".split())
# What a reader of tables gives for each row.
ROWS = {"csv.reader": "a list", "csv.DictReader": "a dict"}
ROW_METHODS = {"iterrows": "a row", "itertuples": "a row"}
# Functions that give the items of what they are given, and methods that give (parts of) those of their object.
COPYING = frozenset("tqdm tqdm.tqdm tqdm.auto.tqdm sorted list reversed tuple set iter filter".split())
SAME_METHODS = frozenset("items values keys split read".split())
EMPTY = frozenset("list dict set collections.OrderedDict".split())  # where they are given nothing
# Functions and methods that give strings, numbers, paths, and structures of such.
PLAIN = frozenset("str int float bool len range map pathlib.Path os.fspath".split())
PLAIN_METHODS = frozenset(
    "split rsplit strip lstrip rstrip replace lower upper format join get as_posix with_suffix resolve relative_to "
    "title splitlines removeprefix removesuffix zfill partition rpartition index items keys values".split()
)
LISTS = frozenset("split rsplit splitlines".split())  # methods of strings that give several
