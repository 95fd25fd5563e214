"""W&B's own process and environment, for as long as something is exported."""

import contextlib
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

PROJECT = "bmg-sweeps"  # Unless the user's W&B settings name another.
ONLINE_SECONDS = 30.0  # For a run to begin, and for its upload to end.

_NETWORK_SECONDS = 5.0
# Of the user's W&B environment, what says who they are to which server, and how to
# reach it. The rest is about other runs: ids, names, notes, folders, resuming.
_KEPT = ("API_KEY", "IDENTITY_TOKEN_FILE", "CREDENTIALS_FILE", "CONFIG_DIR", "MODE")
_KEPT += ("BASE_URL", "APP_URL", "ENTITY", "PROJECT", "INSECURE_DISABLE_SSL")
_SETTINGS = {
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "disable_job_creation": True,
    "docker": "",
    "email": "",
    "finish_timeout": ONLINE_SECONDS,
    "finish_timeout_raises": True,
    "host": "",
    "init_timeout": ONLINE_SECONDS,
    "label_disable": True,
    "program": "",
    "quiet": True,
    "sagemaker_disable": True,
    "save_code": False,
    "silent": True,
    "symlink": False,
    "use_dot_wandb": False,
    "username": "",
    "x_disable_machine_info": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
}


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """Opens W&B with this module's settings, and closes it without a trace.

    W&B reads its environment once, when it starts its service process; so both last as
    long as the export, and neither a program around it nor the next export sees them.
    """
    before = {k: v for k, v in os.environ.items() if k.startswith("WANDB_")}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        ours = {k: before[k] for k in (f"WANDB_{n}" for n in _KEPT) if k in before}
        ours |= {f"WANDB_{n}_DIR": scratch for n in ("CACHE", "DATA", "ARTIFACT")}
        ours |= {"WANDB_DIR": scratch, "WANDB_SILENT": "true", "WANDB_HOST": ""}
        ours |= {"WANDB_DISABLE_GIT": "true", "WANDB_ERROR_REPORTING": "false"}
        try:
            _replace_environment(ours)
            import wandb

            wandb.teardown()  # Settings of a program around it would hold.
            wandb.setup(settings=wandb.Settings(**_SETTINGS))
            yield
        finally:
            with contextlib.suppress(Exception, SystemExit):
                wandb.teardown()
            _replace_environment(before)


@contextlib.contextmanager
def staging(folder: str) -> Iterator[None]:
    """Has W&B put copies of an artifact's files into a folder, until they are sent."""
    before = os.environ["WANDB_DATA_DIR"]
    os.environ["WANDB_DATA_DIR"] = folder
    try:
        yield
    finally:
        os.environ["WANDB_DATA_DIR"] = before


def choose_mode(mode: str) -> str:
    """Decides what "auto" means here and now, while W&B is open.

    Args:
        mode: "auto", "online", "offline" or "off".

    Returns:
        The same, unless it is "auto": then what the user's W&B settings say, if they
        are not for online; else "online" with a login and a network, "offline" without.
    """
    if mode != "auto":
        return mode
    import wandb

    settings = wandb.setup().settings
    if settings.mode == "disabled":
        return "off"
    if settings.mode in ("offline", "dryrun"):
        return "offline"
    return "online" if has_login() and is_reachable() else "offline"


def project() -> str:
    """Names the W&B project that runs go to."""
    import wandb

    return wandb.setup().settings.project or PROJECT


def has_login() -> bool:
    """Whether W&B finds credentials: in the environment, .netrc or its settings."""
    import wandb
    from wandb.sdk.lib import wbauth

    try:
        credentials = wbauth.authenticate_session(
            host=wandb.setup().settings.base_url,
            source="export",
            prompt=False,
            update_session=False,
        )
    except Exception:  # Credentials of a wrong form do not log anyone in.
        return False
    return credentials is not None


def is_reachable() -> bool:
    """Whether the server answers, if only with an error; through the user's proxy."""
    import wandb

    base_url = wandb.setup().settings.base_url
    try:
        urllib.request.urlopen(base_url, timeout=_NETWORK_SECONDS).close()
    except urllib.error.HTTPError:
        return True
    except Exception:
        return False
    return True


def _replace_environment(variables: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        del os.environ[name]
    os.environ.update(variables)
