"""The configurations of editors that are not run here have the form that their documentation gives."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from editors.setting import EDITORS, ROOT
from torchmemlint import __version__
from torchmemlint.server.settings import ClientSettings, read_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COMMAND = ["torchmemlint", "server"]
PAGE = (ROOT / "docs" / "editors.md").read_text()


def told(options: dict[str, Any]) -> None:
    """The server takes what an editor sends it at the beginning."""
    assert set(options) == {"settings"}
    assert read_settings(options["settings"], ClientSettings(), Path("/project"))[1] == []


def test_sublime_text() -> None:
    """https://lsp.sublimetext.io/client_configuration/"""
    settings = json.loads((EDITORS / "sublime" / "LSP.sublime-settings").read_text())
    (client,) = settings["clients"].values()
    assert client["enabled"] is True
    assert client["command"] == COMMAND
    assert client["selector"] == "source.python"
    assert set(client) == {"enabled", "command", "selector", "initializationOptions"}
    told(client["initializationOptions"])


def test_jupyterlab() -> None:
    """https://jupyterlab-lsp.readthedocs.io/en/latest/Configuring.html"""
    manager = json.loads((EDITORS / "jupyterlab" / "torchmemlint.json").read_text())["LanguageServerManager"]
    server = manager["language_servers"]["torchmemlint"]
    assert set(server) == {"version", "argv", "languages", "mime_types", "display_name"}
    assert (server["version"], server["argv"], server["languages"]) == (2, COMMAND, ["python"])


def test_jupyterlab_takes_its_configuration() -> None:
    library = pytest.importorskip("jupyter_lsp", reason="jupyter-lsp is not installed")
    configuration = pytest.importorskip("traitlets.config").Config
    found = configuration(json.loads((EDITORS / "jupyterlab" / "torchmemlint.json").read_text()))
    manager = library.LanguageServerManager(config=found, autodetect=False)
    manager.initialize()
    assert [session.argv for session in manager.sessions.values()] == [COMMAND]


def test_pycharm() -> None:
    """https://github.com/redhat-developer/lsp4ij/blob/main/docs/UserDefinedLanguageServerTemplate.md"""
    template = json.loads((EDITORS / "pycharm" / "template.json").read_text())
    assert set(template) == {"id", "name", "programArgs", "fileTypeMappings"}
    assert template["programArgs"]["default"].split() == COMMAND
    assert template["programArgs"]["windows"].split() == ["torchmemlint.exe", "server"]
    (mapping,) = template["fileTypeMappings"]
    assert mapping == {"fileType": {"name": "Python", "patterns": ["*.py", "*.pyi"]}, "languageId": "python"}
    told(json.loads((EDITORS / "pycharm" / "initializationOptions.json").read_text()))


def test_zed() -> None:
    """https://zed.dev/docs/extensions/languages and https://zed.dev/docs/configuring-languages"""
    extension = tomllib.loads((EDITORS / "zed" / "extension.toml").read_text())
    assert {"id", "name", "version", "schema_version", "authors", "description", "repository"} <= set(extension)
    assert extension["language_servers"] == {"torchmemlint": {"name": "torchmemlint", "languages": ["Python"]}}
    package = tomllib.loads((EDITORS / "zed" / "Cargo.toml").read_text())
    assert package["lib"] == {"crate-type": ["cdylib"]}
    assert package["package"]["version"] == extension["version"]
    settings = json.loads((EDITORS / "zed" / "settings.json").read_text())
    assert settings["languages"]["Python"]["language_servers"] == ["torchmemlint", "..."]
    told(settings["lsp"]["torchmemlint"]["initialization_options"])
    code = (EDITORS / "zed" / "src" / "lib.rs").read_text()
    assert 'which("torchmemlint")' in code
    assert 'vec!["server".to_string()]' in code


def test_helix() -> None:
    """https://docs.helix-editor.com/languages.html"""
    languages = tomllib.loads((EDITORS / "helix" / "languages.toml").read_text())
    server = languages["language-server"]["torchmemlint"]
    assert [server["command"], *server["args"]] == COMMAND
    told(server["config"])
    assert languages["language"] == [{"name": "python", "language-servers": ["torchmemlint"]}]


def test_the_page_names_every_setting() -> None:
    cells = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(\w+)`", "\n".join(cells)))
    for setting in named:
        assert read_settings({setting: None}, ClientSettings(), None)[1] == [], setting
    fields = {field.replace("_", "") for field in ClientSettings.__slots__}
    assert {name.lower() for name in named} == fields


def test_the_extension_knows_every_setting() -> None:
    manifest = json.loads((EDITORS / "vscode" / "package.json").read_text())
    properties = manifest["contributes"]["configuration"]["properties"]
    known = {name.removeprefix("torchmemlint.").replace(".", "").lower() for name in properties}
    fields = {field.replace("_", "") for field in ClientSettings.__slots__}
    assert known - fields == {"path", "interpreter", "importstrategy", "traceserver"}
    assert fields <= known


def test_the_pictures_are_there() -> None:
    for document in (ROOT / "README.md", ROOT / "docs" / "editors.md"):
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", document.read_text()):
            assert (document.parent / picture).is_file(), picture


def test_the_extension_is_of_one_piece_with_the_linter() -> None:
    manifest = json.loads((EDITORS / "vscode" / "package.json").read_text())
    assert manifest["version"] == __version__
    assert (EDITORS / "vscode" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    lock = json.loads((EDITORS / "vscode" / "package-lock.json").read_text())
    assert lock["version"] == __version__
    for name, package in lock["packages"].items():
        assert "resolved" not in package, name  # whoever installs it has a registry of their own


def test_every_command_of_the_extension_is_registered_and_told() -> None:
    manifest = json.loads((EDITORS / "vscode" / "package.json").read_text())
    code = (EDITORS / "vscode" / "src" / "commands.ts").read_text()
    page = (EDITORS / "vscode" / "README.md").read_text()
    for command in manifest["contributes"]["commands"]:
        assert f'"{command["command"]}":' in code
        assert f"| {command['category']}: {command['title']} |" in page
    for setting in manifest["contributes"]["configuration"]["properties"]:
        assert f"| `{setting}` |" in page
