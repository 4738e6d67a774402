"""The files of a report, each written whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from cells.html.page import html_report
from cells.report_document import Document
from cells.report_markdown import markdown_report
from harness.errors import StorageError, UsageError

__all__ = ["write_document"]


def write_document(document: Document, folder: Path) -> dict[str, Path]:
    """
    Write `report.md`, and `report.html` where the page's template engine is installed; their paths by kind.

    Both are written before either takes the place of an older one. A page of an earlier report is taken away where none
    can be made, so that what lies beside the Markdown never tells of another record; what could not be written whole is
    taken away. Raises `UsageError` where `folder` is none, `StorageError` where it can't be written.
    """
    texts = {"md": markdown_report(document)}
    if find_spec("jinja2") is not None:
        texts["html"] = html_report(document)
    paths = {kind: folder / f"report.{kind}" for kind in texts}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, text in texts.items():
            _scratch(paths[kind]).write_text(text, "utf-8", newline="\n")
        for path in paths.values():
            _scratch(path).replace(path)
        if "html" not in paths:
            (folder / "report.html").unlink(missing_ok=True)
    except OSError as error:
        for path in paths.values():
            with suppress(OSError):
                _scratch(path).unlink(missing_ok=True)
        refused = UsageError if isinstance(error, (FileExistsError, NotADirectoryError)) else StorageError
        raise refused(f"{folder} can't take the report: {error}. Make room, or name another folder by --out") from None
    return paths


def _scratch(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")
