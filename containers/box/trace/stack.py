"""Whose code is running: the test's or the op's."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType

from farm.recipes.cutile_rs.storages import Maker


class Whereabouts:
    """Reads the Python stack against the layout of one repo."""

    def __init__(self, repo: Path, tests: tuple[str, ...], in_autograd: Callable[[], bool]) -> None:
        self.in_autograd = in_autograd
        self._repo = f"{repo.resolve()}/"
        self._tests = tuple({f"{repo.resolve()}/{test.split('/')[0]}/" for test in tests if "/" in test})
        self._test_files = {str(repo.resolve() / test) for test in tests}

    def is_repo(self, file: str) -> bool:
        """Whether the file belongs to the repo."""
        return file.startswith(self._repo)

    def is_test(self, file: str) -> bool:
        """Whether the file belongs to the tests: it shares the top folder of a test file."""
        return file in self._test_files or file.startswith(self._tests)

    def maker(self) -> Maker:
        """Who is at work: autograd, or else the innermost frame whose file lies in the repo decides.

        The stack of a backward function has the call of `backward` below it, so its own frame comes first.
        """
        engine = self.in_autograd()
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if self.is_repo(file):
                if not self.is_test(file):
                    return Maker.OP
                return Maker.ENGINE if engine else Maker.TEST
            frame = frame.f_back  # type: ignore[assignment]
        return Maker.TEST

    def test_codes(self) -> set[CodeType]:
        """The code objects of the test files that are on the stack."""
        found = set()
        frame = sys._getframe(1)
        while frame is not None:
            if self.is_test(frame.f_code.co_filename):
                found.add(frame.f_code)
            frame = frame.f_back  # type: ignore[assignment]
        return found
