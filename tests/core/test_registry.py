"""What exists, by name."""

import pytest

from hardthresh.core import HardThreshError, InvalidInputError, lookup, register, registered
from hardthresh.core import registry as registry_module
from hardthresh.core import schema as schema_module


@pytest.fixture(autouse=True)
def own_list(monkeypatch):
    """A test's registrations stay its own."""
    copies = {kind: dict(entries) for kind, entries in registry_module._ENTRIES.items()}
    monkeypatch.setattr(registry_module, "_ENTRIES", copies)
    monkeypatch.setattr(schema_module, "_SCHEMAS", schema_module.schemas())


def test_registered_classes_are_found():
    @register("loss", "nothing")
    class Nothing:
        pass

    assert lookup("loss", "nothing") is Nothing
    entry = registered("loss")["nothing"]
    assert (entry.name, entry.cls) == ("nothing", Nothing)
    assert [type(example) for example in entry.examples()] == [Nothing]


def test_examples_of_ones_own():
    @register("step", "numbered", lambda: [Numbered(1), Numbered(2)])
    class Numbered:
        def __init__(self, number):
            self.number = number

    assert [example.number for example in registered("step")["numbered"].examples()] == [1, 2]


def test_a_name_is_taken_only_once():
    @register("loss", "taken")
    class First:
        pass

    with pytest.raises(InvalidInputError, match=r"'taken' is taken by .*First"):

        @register("loss", "taken")
        class Second:
            pass

    assert lookup("loss", "taken") is First

    @register("solver", "taken")
    class Other:
        """Another kind has another list."""

    assert lookup("solver", "taken") is Other


def test_a_module_may_be_loaded_again():
    def define():
        @register("loss", "reloaded")
        class Reloaded:
            pass

        return Reloaded

    first, second = define(), define()
    assert first is not second
    assert lookup("loss", "reloaded") is second


def test_an_unknown_name_lists_those_that_exist():
    import hardthresh.losses  # noqa: F401

    with pytest.raises(InvalidInputError, match=r"unknown loss 'sqared'; known: .*logistic.*squared"):
        lookup("loss", "sqared")


def test_the_list_handed_out_is_a_copy():
    registered("loss").clear()
    assert registered("loss")


def test_errors_are_also_the_builtin_kind():
    assert issubclass(InvalidInputError, HardThreshError)
    assert issubclass(InvalidInputError, ValueError)
