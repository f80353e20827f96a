"""Write what the engine answers now into the case files: `python -m tests.cases.regenerate [file …]`.

Review the difference as if it were code: the engine is what the cases judge. An answer that is equal up to the last
digits of a DOUBLE is left as it was.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cases.casefile import FOLDER, Case, Expected, read_file
from tests.cases.judging import LAST_DIGITS, judge
from tests.cases.playing import Played


def regenerate(path: Path) -> list[str]:
    """Rewrite one file; return what a reader should look at."""
    file = read_file(path)
    with TemporaryDirectory() as root:
        played = Played(file, Path(root))
    remarks: list[str] = []
    cases: list[Case] = []
    for case in file.cases:
        (who, first), *others = played.outcomes[case.name].items()
        for other, outcome in others:
            if wrong := judge(outcome, first, tolerance=LAST_DIGITS):
                remarks.append(f"{file.name}: {case.name}: {other} is not as {who}: {wrong}")
        cases.append(replace(case, expected=_kept(case, first)))
        if cases[-1].expected != case.expected:
            remarks.append(f"{file.name}: {case.name}: {'changed' if case.expected else 'new'}")
    path.write_text(replace(file, cases=tuple(cases)).text())
    return remarks


def _kept(case: Case, found: Expected) -> Expected:
    if case.expected is not None and not judge(found, case.expected, tolerance=LAST_DIGITS):
        return case.expected
    return found


def main(names: list[str]) -> None:
    """Rewrite the named files, or all."""
    for path in sorted(FOLDER.glob("*.case")):
        if not names or path.stem in names:
            for remark in regenerate(path):
                print(remark)


if __name__ == "__main__":
    main(sys.argv[1:])
