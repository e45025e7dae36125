"""Just enough of Rust's lexis to find module blocks and symbols: comments and literals are blanked first."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<line>//[^\n]*) | (?P<block>/\*)
    | (?P<raw>\bb?r(?P<hashes>\#*)".*?"(?P=hashes)) | (?P<string>\bb?"(?:\\.|[^"\\])*"|"(?:\\.|[^"\\])*")
    | (?P<char>'(?:\\[^\n']*'?|[^'\\\n])')""",
    re.VERBOSE | re.DOTALL,
)


class Span(NamedTuple):
    """Offsets of a stretch of text."""

    start: int  #: of the first character
    end: int  #: behind the last character


def blank(text: str) -> str:
    """The text with comments, strings and character literals turned into spaces; line ends stay."""
    out, at = [], 0
    while (match := _TOKEN.search(text, at)) is not None:
        end = _block_comment_end(text, match.start()) if match["block"] else match.end()
        out += [text[at : match.start()], re.sub(r"[^\r\n]", " ", text[match.start() : end])]
        at = end
    return "".join((*out, text[at:]))


def _block_comment_end(text: str, start: int) -> int:
    depth = 0
    for match in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return start + match.end()
    return len(text)


def modules(text: str) -> Iterator[tuple[str, Span]]:
    """Names and spans of the inline `mod name { .. }` items at the top of a file.

    A span holds whole lines, with the attributes and comments directly above the item.
    """
    code = blank(text)
    for match in re.finditer(r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*\{", code, re.MULTILINE):
        before = code[: match.start()]
        if before.count("{") != before.count("}"):
            continue
        end = _closing_brace(code, match.end())
        line_end = text.find("\n", end)
        yield match[1], Span(_lead(text, match.start()), len(text) if line_end < 0 else line_end + 1)


def _closing_brace(code: str, at: int) -> int:
    depth = 1
    for match in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return len(code)


def _lead(text: str, start: int) -> int:
    """Start of the attributes and comments directly above a line; a comment that opens the file stays."""
    lead = start
    while lead > 0:
        previous = text.rfind("\n", 0, lead - 1) + 1
        if previous == 0 or not text[previous:lead].lstrip().startswith(("#[", "//")):
            break
        lead = previous
    above = text[:lead].strip()
    return lead if above else start


_ENTRY = r"#\[\s*(?:\w+::)?entry\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(?:unsafe\s+)?fn\s+(\w+)"


def symbols(text: str) -> tuple[str, ...]:
    """Names of the device entries and of the exported C functions of a file, sorted."""
    return tuple(sorted({*entries(text), *exports(text)}))


def exports(text: str) -> tuple[str, ...]:
    """Names of the C functions that a file defines, sorted."""
    return tuple(sorted(set(re.findall(r"\bextern\s+fn\s+(\w+)", blank(text)))))  # the ABI string is blank


def entries(text: str) -> tuple[str, ...]:
    """Names of a file's device entries, sorted."""
    return tuple(sorted(set(re.findall(_ENTRY, blank(text)))))


def code_tokens(text: str) -> tuple[str, ...]:
    """The text's tokens without comments and layout; literals stay as they are written."""
    out, at = [], 0
    while (match := _TOKEN.search(text, at)) is not None:
        comment = match["line"] is not None or match["block"] is not None
        end = _block_comment_end(text, match.start()) if match["block"] else match.end()
        out += _words(text[at : match.start()])
        out += [] if comment else [match.group()]
        at = end
    return (*out, *_words(text[at:]))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|\S", text)
