"""What is kept and shown holds nothing of the user's environment, and runs nothing."""

import ast
import json
import os
import pathlib

import pytest
import toy_checkout
from toy_points import run_all

from bmg_sweeps import __main__, paths, privacy
from bmg_sweeps.launching import revision
from bmg_sweeps.records import attempts, files, manifests, store
from bmg_sweeps.reporting import index
from bmg_sweeps.sweep import choices

SECRETS = {
    "WANDB_API_KEY": "ca9a52ee" * 5,  # Of the form of one.
    "AWS_SECRET_ACCESS_KEY": "canary/secret+of=AWS",
    "MY_TOKEN": "canary-token",
}
SECRETS |= {"MY_PASSWORD": SECRETS["MY_TOKEN"] + "-too"}  # Begins with another.
PLAIN = {"USER": "canaryuser", "LOGNAME": "canaryuser", "EDITOR": "canaryeditor"}


@pytest.fixture
def home(tmp_path, monkeypatch, toy):
    """A user with secrets, in a folder of their home, with a toy and its sweep."""
    folder = tmp_path / "canaryhome"
    (folder / "work").mkdir(parents=True)
    for name in [n for n in os.environ if n.startswith(("WANDB_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name, value in ({"HOME": str(folder)} | SECRETS | PLAIN).items():
        monkeypatch.setenv(name, value)
    toy_checkout.enter(folder / "work", toy, monkeypatch, "product(seed=(0, 1, 2))")
    return folder


@pytest.fixture
def leaking(home, toy):
    """Records of three points; the second one failed, and said all that it knew."""
    storage = files.open_storage("runs")
    points = choices.choose("mine.py", choices.Choice()).points
    for p in points:
        store.declare(storage, p.trainer, p.id, p.gin_text())
    stop = {"env_steps": 60}
    first, second, third = (p.id for p in points)
    run_all(storage, {first: stop})
    toy.FAILURES += 2 * [RuntimeError(f"{home}/data/file, {home}: {SECRETS}")]
    run_all(storage, {second: stop})
    run_all(storage, {third: stop}, launch={"revision": revision.revision()})
    assert not toy.FAILURES
    return storage


def main(capsys, *arguments):
    """Runs a command; returns its output and errors, together."""
    assert __main__.main([*arguments, "--storage", "runs"]) == 0
    return "".join(capsys.readouterr())


def canaries(home):
    """All that must be nowhere."""
    return [*SECRETS.values(), *PLAIN.values(), str(home), home.name]


def found(texts, home):
    """The canaries that are somewhere, and where."""
    return [
        (canary, where)
        for where, data in texts.items()
        for canary in canaries(home)
        if canary.encode() in data
    ]


def test_nothing_of_the_environment_is_kept_or_shown(leaking, home, capsys):
    """Every byte of records, reports and offline W&B runs, and of all output."""
    commands = [["status"], ["show"], *(["show", "--point", i] for i in ids())]
    formats = ("text", "csv", "markdown", "html")
    commands += [["report", "--format", name] for name in formats]
    commands += [["track", "--wandb", "offline"]]
    shown = {str(c): main(capsys, c[0], "mine.py", *c[1:]).encode() for c in commands}
    kept = {
        str(p): p.read_bytes() for p in pathlib.Path("runs").rglob("*") if p.is_file()
    }
    assert any(name.endswith(".wandb") for name in kept)
    assert any(name.endswith(".html") for name in kept)
    assert found(kept | shown, home) == []
    assert b"failed: RuntimeError" in shown["['status']"]


def ids():
    return [p.id for p in choices.choose("mine.py", choices.Choice()).points]


def test_a_message_says_what_it_left_out(leaking):
    """The name of each variable; the reader can tell what was meant."""
    record = store.read(leaking, "toy_trainer", ids()[1])
    message = record.failure.message
    assert message.startswith("file, ~: {'WANDB_API_KEY': '$WANDB_API_KEY'")
    assert all(f"'{name}': '${name}'" in message for name in SECRETS)


def test_a_pack_that_raises_says_no_secrets(home, toy, monkeypatch):
    """Why points left it is in their records, too."""
    storage = files.open_storage("runs")
    points = choices.choose("mine.py", choices.Choice()).points
    for p in points:
        store.declare(storage, p.trainer, p.id, p.gin_text())

    once = [RuntimeError(f"{home}/data/file: {SECRETS['MY_TOKEN']}")]
    real = toy.init

    def init(*arguments):
        if once:
            raise once.pop()
        return real(*arguments)

    monkeypatch.setattr(toy, "init", init)
    monkeypatch.setattr("bmg_sweeps.running.programs._COMPILED", {})
    run_all(storage, {p.id: {"env_steps": 60} for p in points}, pack=3)
    record = store.read(storage, "toy_trainer", points[0].id)
    assert record.provenance.left_pack == "RuntimeError: file: $MY_TOKEN"


def test_a_report_of_a_storage_at_home_does_not_say_whose(leaking, home, capsys):
    """The shell knows what ~ is."""
    storage = str(home / "work" / "runs")
    arguments = ["report", "mine.py", "--storage", storage, "--format", "markdown"]
    assert __main__.main(arguments) == 0
    output = capsys.readouterr().out
    assert "--storage ~/work/runs" in output
    assert found({"output": output.encode()}, home) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{home}", "~"),
        ("{home}/x", "~/x"),
        ("{home}2/x", "{home}2/x"),  # Another user's.
        ("{home}-old", "{home}-old"),
        ("a canary-token-too.", "a $MY_PASSWORD."),
        ("canaryeditor", "canaryeditor"),  # EDITOR is not named like a secret.
        ("true", "true"),
        ("s3://user:word@bucket/runs", "s3://bucket/runs"),
        ("?api_key=abc1&z, token=abc", "?api_key=…&z, token=…"),
        ("/home/ann/x", "/home/ann/x"),  # In a command it must stay.
        ("postgres://u:p@ss/w:rd@host:5432/db", "postgres://host:5432/db"),
        ("via http://me:hunter2@proxy:3128 failed", "via http://proxy:3128 failed"),
        ("https://host/@scope/x, a@b.org", "https://host/@scope/x, a@b.org"),
        ("https://user@host/x", "https://host/x"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer …"),
        ("header 'Authorization': 'Basic dXNlcjpwYXNz'", "header 'Authorization': '…'"),
        (
            "{{'password': 'correct horse', 'user': 'a'}}",
            "{{'password': '…', 'user': 'a'}}",
        ),
        ('"db_password": "correct"', '"db_password": "…"'),
        ("PGPASSWORD=correcthorse psql", "PGPASSWORD=… psql"),
        ("login --password correct --user a", "login --password … --user a"),
        ("x-api-key: 12ab34cd56", "x-api-key: …"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345 is", "… is"),
        ("AKIA0123456789ABCDEF", "…"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2ln", "…"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END",
            "-----BEGIN RSA PRIVATE KEY-----…-----END",
        ),
        # Words that are about secrets, or only sound so, stay.
        (
            "lease.token: expected `str`, got `null`",
            "lease.token: expected `str`, got `null`",
        ),
        (
            "basic training, pass 2 of 3; the key rate",
            "basic training, pass 2 of 3; the key rate",
        ),
        ("password: expected a word", "password: expected a word"),
        ("sha256 ca9a52ee01ca9a52ee01", "sha256 ca9a52ee01ca9a52ee01"),
    ],
)
def test_what_is_the_users_own_is_left_out_and_nothing_else(
    home, monkeypatch, text, expected
):
    """Whole names only, and no words that happen to be values."""
    monkeypatch.setenv("IS_SECRET", "true")
    monkeypatch.setenv("PWD", "a canary folder")
    assert privacy.scrubbed(text.format(home=home)) == expected.format(home=home)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("DATABASE_URL", "postgres://u:canarypass1@host/db", "FATAL: canarypass1"),
        ("DB_PASS", "canarypass1", "tried canarypass1"),
        ("SERVICE_CREDENTIALS", "canarypass1", "tried canarypass1"),
        ("SENTRY_DSN", "canarypass1", "tried canarypass1"),
        ("REDIS_PWD", "canarypass1", "tried canarypass1"),
    ],
)
def test_secrets_have_many_names(monkeypatch, name, value, text):
    """And a URI in a variable of any name has a password."""
    monkeypatch.setenv(name, value)
    assert privacy.scrubbed(text) == text.replace("canarypass1", f"${name}")


LONG = "x" * 2_000  # A message is cut in its middle, where half a secret would stay.


@pytest.mark.parametrize(
    "leak",
    [
        "postgres://me:canarypass1@host/db",
        "Authorization: Bearer canary.token.1234",
        "proxy http://me:canarypass1@proxy:3128 refused",
        LONG[:980] + " password='canarypass1' " + LONG,
    ],
)
def test_whatever_writes_to_a_record_is_scrubbed(storage, leak):
    """Where text enters it: failures, and what attempts and trainers note."""
    record = store.read(storage, "trainer", "0123456789ab")
    attempts.begin(storage, record).commit(
        failure=manifests.Failure("failed", 1, "Error", leak),
        provenance={"left_pack": leak, "of_a_trainer": {"source": [leak]}},
        release=True,
    )
    found = store.read(storage, "trainer", "0123456789ab").manifest
    text = json.dumps(manifests.as_dict(found), ensure_ascii=False)
    assert "canary" not in text
    assert "host/db" in text or "…" in text or "proxy:3128" in text


def test_where_files_lie_can_be_left_out(home):
    """All folders for a record, the homes of others for a page."""
    text = f"{home}/data/file and /home/ann/x and /srv/y and /Users/bob"
    assert privacy.scrubbed(text, folders=True) == "file and ~/x and y and ~"
    assert privacy.scrubbed(text, homes=True) == "~/data/file and ~/x and /srv/y and ~"


def test_json_stays_json(home, monkeypatch):
    """A number that happens to be the value of a variable is none of its strings."""
    monkeypatch.setenv("TOKEN_LIMIT", "10000000")
    text = json.dumps({"a": 10000000, "b": '"canary-token", \\ /home/ann'})
    assert json.loads(privacy.scrubbed_json(text)) == {
        "a": 10000000,
        "b": '"$MY_TOKEN", \\ ~',
    }


def test_many_texts_read_the_environment_once(storage, monkeypatch):
    """Reading it takes longer than scrubbing: a page has thousands, a commit dozens."""
    read, of_environment = [], privacy._of_environment
    monkeypatch.setattr(
        privacy, "_of_environment", lambda: read.append(1) or of_environment()
    )
    privacy.scrubbed_json(json.dumps(["a", "b", "c"]))
    assert len(read) == 1
    record = store.read(storage, "trainer", "0123456789ab")
    attempt = attempts.begin(storage, record)
    attempt.commit(provenance={"packages": dict.fromkeys("abc", "1")}, release=True)
    assert len(read) == 2
    index.write([], "used: a, b, c")
    assert len(read) == 3


def test_each_page_hides_the_secrets_of_its_time(monkeypatch):
    """One that was set after another page was written."""
    assert "canary-later" in index.write([], "canary-later")
    monkeypatch.setenv("LATER_TOKEN", "canary-later")
    assert "canary-later" not in index.write([], "canary-later")


SOURCES = [
    path
    for folder in ("bmg_sweeps", "trainers", "sweeps", "benchmarks", "deploy")
    for path in sorted((paths.ROOT / folder).rglob("*.py"))
]
UNPICKLING = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve", "yaml"}
EXECUTING = {"eval", "exec", "compile", "__import__"}


def imported(tree):
    """The packages that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


def called(tree):
    """The calls of a module as text, each with the names of its keywords' values."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            keywords = {k.arg: ast.unparse(k.value) for k in node.keywords}
            yield ast.unparse(node.func), keywords


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_module_unpickles(path):
    """Nor reads anything else that can hold code: states are arrays, all else text.

    One reads users' pickled data sets, with a reader that makes none of the calls that
    they ask for; its tests give it hostile ones.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path != paths.ROOT / "bmg_sweeps" / "tasks" / "pickles.py":
        assert not UNPICKLING & {*imported(tree)}
    for function, keywords in called(tree):
        loads = function in ("np.load", "numpy.load", "jnp.load")
        assert keywords.get("allow_pickle", str(loads)) == "False", function


def test_only_sweep_files_are_executed():
    """Text becomes code in one place, where users hand in their own file."""
    executing = {
        (path.name, function)
        for path in SOURCES
        for function, _ in called(ast.parse(path.read_text(encoding="utf-8")))
        if function in EXECUTING
    }
    assert executing == {("loading.py", "compile"), ("loading.py", "exec")}
