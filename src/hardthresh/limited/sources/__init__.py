"""Sources of examples: a table, rows, a file or a function that measures; and the journal of purchases."""

from .array import ArraySource
from .base import AttributeSource, Example, Examples
from .callback import CallbackSource
from .file import FileSource
from .journal import Journal
from .journal_conversion import convert_journal
from .rows import RowSource

__all__ = [
    "ArraySource",
    "AttributeSource",
    "CallbackSource",
    "Example",
    "Examples",
    "FileSource",
    "Journal",
    "RowSource",
    "convert_journal",
]
