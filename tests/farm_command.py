"""The real `farm` command, in processes of its own."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


class FarmCommand:
    """Runs `farm` with a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self._env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("TILEFARM_")},
            "TILEFARM_STATE": str(self.state),
            **{k: v for k, v in os.environ.items() if k == "TILEFARM_TOOLCHAIN"},
            "TILEFARM_LIMITS__MIN_FREE_BYTES": "1",
            "PYTHONPATH": str(ROOT),
        }

    def run(self, *args: str, limit_s: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
        """One command."""
        program = "from drivers.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-P", "-c", program, *args],
            env={**self._env, **env},
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )

    def refused(self, *args: str, code: int, **env: str) -> str:
        """The message of a command that has to end with `code`, without a traceback, and that leaves nothing."""
        before = self._paths()
        done = self.run(*args, "--json", **env)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        assert (document["kind"], document["exit_code"]) == ("error", code)
        assert self.runs() == 0
        assert not (self.state / "run" / "service.json").exists()
        assert self._paths() == before
        return str(document["message"])

    def _paths(self) -> set[Path]:
        """Everything in the state folder's parent, which is the test's own."""
        return set(self.state.parent.glob("state*/**/*")) | set(self.state.parent.glob("state*"))

    def document(self, *args: str, code: int = 0, limit_s: float = 120) -> Any:
        """What a command prints as JSON; it has to end with `code`."""
        done = self.run(*args, "--json", limit_s=limit_s)
        assert done.returncode == code, f"{args} ended with {done.returncode}: {done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def runs(self) -> int:
        """Runs in the ledger; a ledger that was never made has none."""
        ledger = self.state / "ledger.db"
        if not ledger.exists():
            return 0
        with sqlite3.connect(ledger) as connection:
            tables = connection.execute("select name from sqlite_master where name = 'runs'").fetchall()
            return int(connection.execute("select count(*) from runs").fetchone()[0]) if tables else 0
