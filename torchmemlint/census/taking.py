"""A census from a run over projects."""

from __future__ import annotations

from pathlib import Path

from torchmemlint.census.counting import Census, Found, Project, census_of
from torchmemlint.engine.corpus.checking import Corpus, Ready
from torchmemlint.engine.one_file import may_be_relevant
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding
from torchmemlint.report.places import place
from torchmemlint.source.decoding import UnreadableFile, lines_of, read
from torchmemlint.source.loading import load


class Taking:
    """Measures projects as they come by."""

    def __init__(self) -> None:
        self.projects: list[Project] = []

    def seen(self, ready: Ready) -> None:
        """Take in a project, while its files are there."""
        files = lines = torch_files = torch_lines = 0
        for file in ready.files:
            try:
                data = read(file)
                rows = len(lines_of(load(data, file).shown))
            except UnreadableFile:  # a finding says so
                continue
            files, lines = files + 1, lines + rows
            if may_be_relevant(data, file, ready.resolver.settings_for(file.parent).contracts):
                torch_files, torch_lines = torch_files + 1, torch_lines + rows
        self.projects.append(Project(ready.project.name, files, lines, torch_files, torch_lines))

    def census(self, corpus: Corpus) -> Census:
        """Check all projects and count. To be asked while what is unpacked is there."""
        report = corpus.report()
        return census_of(self.projects, [_found(one, report) for one in report.findings], report.errors)


def _found(finding: Finding, report: RunReport) -> Found:
    source, row = report.programs(finding.filename), finding.span.start.row
    where = place(finding, finding.span.start)
    return Found(
        finding.filename.parts[0],
        Path(*finding.filename.parts[1:]).as_posix(),
        where.row,
        where.column,
        finding.code,
        finding.name,
        finding.severity.value,
        finding.message,
        finding.fingerprint,
        source[row - 1].strip() if row <= len(source) else "",
        finding.confidence.value,
    )
