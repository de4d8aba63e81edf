"""Tables and sections of docs/performance.md, which two programs write."""

from tests.paths import ROOT

PAGE = ROOT / "docs" / "performance.md"
OF_SIZES = "## Models that grow"  # the section that `tests.benchmarks.sizes` writes


def table(head, rows):
    """A table in Markdown."""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)])


def split(text, heading):
    """(what is before the section with this heading, the section, what is after it); without one, all is before."""
    begin = text.find(f"{heading}\n")
    if begin < 0:
        return text.rstrip("\n") + "\n\n", "", ""
    end = text.find("\n## ", begin)
    end = len(text) if end < 0 else end + 1
    return text[:begin], text[begin:end], text[end:]


def replaced(text, section):
    """The page with a section in place of the one with its heading, or behind all others."""
    before, _, after = split(text, section.splitlines()[0])
    return before + section.rstrip("\n") + "\n" + ("\n" + after if after else "")
