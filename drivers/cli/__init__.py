"""The `farm` command."""


def main() -> None:
    """Entry point of the program. Ctrl-C ends it with 130 wherever no command says more about it."""
    import os
    import sys

    try:
        from drivers.cli.app import build_app
        from drivers.cli.wiring import real_wiring

        build_app(real_wiring(os.environ))(prog_name="farm")
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
