"""How the linter and its pages speak: what is held against messages and against prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import mean

import click

LONGEST = 100  # characters of a message, where the code in it is counted as that of a short one
CODE = 20  # characters of code that are counted
MEAN = 16  # words of a sentence, on a page
BANNED = re.compile(
    r"\b(tells?|told|mends?|mended|anew|stands?|comes? to|written out|writes? out|in view|of which|nobody|host)\b", re.I
)
_CODE = re.compile(r"`([^`]*)`")
_FENCE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"<!-- (?P<name>[a-z-]+): (?:written|run) by .*?<!-- end of (?P=name) -->", re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_NOT_PROSE = re.compile(r"^(#|\||!\[|<|---|\[[^\]]+\]:)")
_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[(\"])")


def complaints(message: str) -> Iterator[str]:
    """What is wrong with what a finding says."""
    plain = _CODE.sub("`x`", message)
    if not message.startswith("`") and not message[:1].islower():
        yield "does not begin with code, or in lower case"
    if "`" not in message:
        yield "names no code"
    if message.endswith("."):
        yield "ends with a full stop"
    if (length := len(_CODE.sub(lambda code: f"`{code[1][:CODE]}`", message))) > LONGEST:
        yield f"has {length} characters, of code {CODE} at most"
    yield from banned(plain)


def banned(text: str) -> Iterator[str]:
    """The words that are not to be used, of text without code."""
    yield from (f"says `{found[0]}`" for found in BANNED.finditer(_CODE.sub("`x`", text)))


def sentences(page: str) -> Iterator[str]:
    """The sentences of a Markdown page: of its paragraphs and lists, without code, tables and generated parts."""
    text = _FENCE.sub("\n", _GENERATED.sub("\n", _FRONT.sub("", page)))
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        item = re.match(r"([-*]|\d+\.)\s+", bare)
        if not bare or item or _NOT_PROSE.match(bare):
            yield from _split(" ".join(paragraph))
            paragraph = []
        if bare and not _NOT_PROSE.match(bare):
            paragraph.append(bare[item.end() :] if item else bare)


def _split(paragraph: str) -> Iterator[str]:
    plain = _CODE.sub("X", re.sub(r"\]\([^)]*\)", "]", paragraph))
    yield from (one for one in _END.split(plain) if len(one.split()) > 2)


def mean_length(page: str) -> float:
    """The words of a page's sentences, on average."""
    counts = [len(one.split()) for one in sentences(page)]
    return mean(counts) if counts else 0.0


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """The texts of a command's `--help`, and of those below it, each with the command or option that has it."""
    yield from ((name, text) for text in (command.help, command.epilog, command.short_help) if text)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.help:
            yield f"{name} {max(parameter.opts, key=len)}", parameter.help
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None, f"{name} lists {below}, and has none"
            yield from helps(found, f"{name} {below}")
