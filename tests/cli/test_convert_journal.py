"""``hardthresh convert-journal``."""

import pytest

TERMS = (
    '{"format": "hardthresh journal", "format_version": 1, "n_features": 2, "budget": 1.0, "panels": null, '
    '"prices": null, "feature_names": null, "examples": null}\n'
)
ANSWER = '{"example": 0, "indices": [1], "values": [4.0], "target": 1.0}\n'


@pytest.fixture
def old(folder):
    path = folder / "old.jsonl"
    path.write_text(TERMS + ANSWER)
    return path


def test_it_says_how_many_answers_it_wrote(done, old):
    assert done("convert-journal", "old.jsonl", "new.sqlite") == "1 answer of old.jsonl written to new.sqlite\n"
    assert old.with_name("new.sqlite").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.filterwarnings("default")
def test_a_cut_line_is_a_warning(run, old):
    old.write_text(TERMS + ANSWER + ANSWER[:20])
    result = run("convert-journal", "old.jsonl", "new.sqlite")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: the last line of old.jsonl, 3, was cut; it is left out")


def test_invalid_journals_give_an_error_of_one_line(refused, old):
    assert refused("convert-journal", "old.jsonl", "old.jsonl").startswith("old.jsonl is there already")
    assert refused("convert-journal", "none.jsonl", "new.sqlite") == "there is no file none.jsonl"
    old.write_text(TERMS + "{\n")
    assert refused("convert-journal", "old.jsonl", "new.sqlite").startswith("line 2 of old.jsonl is damaged")
