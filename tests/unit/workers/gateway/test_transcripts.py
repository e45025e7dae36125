from pathlib import Path

import pytest

from workers.gateway.transcripts import REDACTED, append, lines, new_in, redacted


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-" + "a" * 40,
        "farm-" + "b" * 43,
        "ghp_" + "c" * 36,
        "github_pat_" + "d" * 40,
        "AKIA" + "E" * 16,
        "hf_" + "f" * 34,
        "xoxb-1234567890-abc",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
        "Bearer " + "g" * 30,
        "the farm's own key",
    ],
)
def test_secrets_do_not_reach_the_file(tmp_path: Path, secret: str) -> None:
    path = tmp_path / "t" / "1.jsonl"
    append(path, {"a": f"x {secret} y", secret: [secret]}, ("the farm's own key",))
    text = path.read_text()
    assert secret not in text
    assert secret.split("\n")[0] not in text
    (line,) = lines(path)
    assert line["a"] == f"x {REDACTED} y"


def test_words_that_only_begin_like_secrets_stay() -> None:
    text = "a task-list, farm-certified/cutile-rs, sk-learn, bearer of news"
    assert redacted(text, ("",)) == text


def test_lines_are_read_back_whatever_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    said = {"text": "\u2028 \x85 \ud800 \U0001f980 \n"}
    append(path, said, ())
    append(path, {"n": 2}, ())
    with path.open("a") as file:
        file.write('{"cut":')
    assert lines(path) == (said, {"n": 2})
    assert lines(tmp_path / "none") == ()


def test_only_what_is_new_is_written_down() -> None:
    first = {
        "model": "m",
        "max_tokens": 1,
        "stream": True,
        "system": "s",
        "messages": [{"role": "user", "content": "q"}],
    }
    assert new_in(first) == {"system": "s", "messages": first["messages"]}
    answer, result = {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}
    assert new_in(first | {"messages": [*first["messages"], answer, result]}) == {"messages": [result]}
