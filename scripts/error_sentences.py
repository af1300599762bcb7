#!/usr/bin/env python3
"""error_sentences.py LINES.json EXCUSED.txt: fails if a sentence that an error can say is said in no test.

LINES.json is gcovr's (scripts/coverage.sh). A sentence on a line of its own was said if the line ran. One behind an
`if` on the same line was said for sure if each condition of that line went both ways, which is a little more.
EXCUSED.txt: `file: piece of the line: reason` for those that no test can reach.
"""
import json
import pathlib
import re
import sys

SITE = re.compile(r"(?<![\w.>:])(throw (?:Error|FileError)|fail|fail_tensor|refuse|unexpected|discard_and_fail)\(")
DEFINITION = re.compile(r"(void|int) $")


def sites(path):
    """First and last line of the statement, its text, and what stands before it on its first line."""
    lines = [line.split("//")[0].rstrip() for line in path.read_text().splitlines()]
    for number, code in enumerate(lines, 1):
        for match in SITE.finditer(code):
            if DEFINITION.search(code[: match.start()]):
                continue
            last = next(n for n in range(number, len(lines) + 1) if lines[n - 1].endswith((";", "}")))
            yield number, last, code.strip(), code[: match.start()]


def both_ways(branches):
    """Whether each condition held once and failed once. One that the compiler drew into the line before has left only
    the calls behind it, which may throw."""
    pairs = list(zip(branches[::2], branches[1::2]))
    conditions = [pair for pair in pairs if not any(b["throw"] for b in pair)]
    if conditions:
        return all(b["count"] for pair in conditions for b in pair)
    return all(a["count"] or b["count"] for a, b in pairs)


def said(lines, first, last, before):
    if "if (" in before:
        return first in lines and lines[first]["count"] > 0 and both_ways(lines[first]["branches"])
    return any(lines[n]["count"] for n in range(first, last + 1) if n in lines)


def excused_by(excuses, name, text):
    for excuse in excuses:
        if excuse[0] == name and excuse[1] in text:
            return excuse
    return None


def main():
    lines = {f["file"]: {line["line_number"]: line for line in f["lines"]} for f in json.load(open(sys.argv[1]))["files"]}
    given = [line for line in open(sys.argv[2]).read().splitlines() if line and not line.startswith("#")]
    excuses = [line.split(": ", 2) for line in given]
    used, missed, total = [], 0, 0
    for path in sorted(p for folder in ("src", "include") for p in pathlib.Path(folder).rglob("*.[chi]*")):
        for number, last, text, before in sites(path):
            total += 1
            excuse = excused_by(excuses, str(path), text)
            if said(lines.get(str(path), {}), number, last, before):
                continue
            if excuse:
                used.append(excuse)
                continue
            missed += 1
            print(f"coverage: {path}:{number} is said in no test: {text}")
    stale = [": ".join(excuse) for excuse in excuses if excuse not in used]
    for excuse in stale:
        print(f"coverage: note: this excuse is not needed here: {excuse}")
    print(f"coverage: {total - missed - len(used)} of {total} places that make an error are reached, {len(used)} excused")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
