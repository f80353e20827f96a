"""Write the engine's current answers into the case files: `python -m tests.cases.regenerate [file …]`.

Review the difference like code: the cases test the engine. Answers that are equal up to the last digits of a DOUBLE are
left unchanged.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cases.casefile import FOLDER, Case, Expected, read_file
from tests.cases.compare import LAST_DIGITS, judge
from tests.cases.runner import FileRun


def regenerate(path: Path) -> list[str]:
    """Rewrite a file; return remarks to review."""
    file = read_file(path)
    with TemporaryDirectory() as root:
        run = FileRun(file, Path(root))
    remarks: list[str] = []
    cases: list[Case] = []
    for case in file.cases:
        (role, first), *others = run.outcomes[case.name].items()
        for other, outcome in others:
            if wrong := judge(outcome, first, tolerance=LAST_DIGITS):
                remarks.append(f"{file.name}: {case.name}: {other} differs from {role}: {wrong}")
        cases.append(replace(case, expected=_unless_equal(case, first)))
        if cases[-1].expected != case.expected:
            remarks.append(f"{file.name}: {case.name}: {'changed' if case.expected else 'new'}")
    path.write_text(replace(file, cases=tuple(cases)).text())
    return remarks


def _unless_equal(case: Case, outcome: Expected) -> Expected:
    if case.expected is not None and not judge(outcome, case.expected, tolerance=LAST_DIGITS):
        return case.expected
    return outcome


def main(names: list[str]) -> None:
    """Rewrite the named files, or all."""
    for path in sorted(FOLDER.glob("*.case")):
        if not names or path.stem in names:
            for remark in regenerate(path):
                print(remark)


if __name__ == "__main__":
    main(sys.argv[1:])
