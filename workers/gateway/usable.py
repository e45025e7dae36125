"""Whether boxes of this host can ask a model, and why not."""

from collections.abc import Mapping

from farm.data import config_folder
from farm.ledger import Budgets
from farm.models import ModelTable, load_models, micro_usd
from farm.settings import Gateway, Settings, api_key
from workers import processes
from workers.gateway.place import process_file, settings_file

#: What to do where there is no key.
ADVICE = "set ANTHROPIC_API_KEY or gateway.key_file, then `farm up`"


def key_problem(gateway: Gateway, environ: Mapping[str, str] | None = None) -> str | None:
    """Why no gateway can be started from this environment; None: one can. Raises ConfigurationError.

    An API of one's own may do without a key, the default one does not.
    """
    if api_key(gateway, environ) is not None or gateway.url != Gateway().url:
        return None
    return f"no key of the model API is known here; {ADVICE}"


def gateway_problem(settings: Settings) -> str | None:
    """Why boxes that start now cannot ask a model; None: a gateway runs, or is about to be started again.

    For workers, which have no key: they cannot start one. Raises ConfigurationError.
    """
    if processes.recorded(process_file(settings.state)) is not None:
        return None
    if not settings_file(settings.state).exists():
        return f"no gateway runs; {ADVICE}"
    if key_problem(settings.gateway, {}) is not None:
        # It was started from an environment with the key, which nobody else has.
        return "the gateway has died, and its key went with it; start it again by `farm up` where the key is set"
    return None


def budgets_of(gateway: Gateway) -> Budgets:
    """The limits that the settings give all calls; a run's own is in the ledger. Raises ConfigurationError."""
    return Budgets(
        job=None if gateway.job_usd is None else micro_usd(gateway.job_usd),
        run=None if gateway.run_usd is None else micro_usd(gateway.run_usd),
        day=None if gateway.day_usd is None else micro_usd(gateway.day_usd),
    )


def models_of(settings: Settings) -> ModelTable:
    """The models and prices that the settings name. Raises ConfigurationError."""
    given = settings.gateway.models
    return load_models(config_folder() / "models.toml" if given is None else given.expanduser())
