"""The `farm` command."""


def main() -> None:
    """Entry point of the program."""
    import os

    from drivers.cli.app import build_app
    from drivers.cli.wiring import real_wiring

    build_app(real_wiring(os.environ))(prog_name="farm")
