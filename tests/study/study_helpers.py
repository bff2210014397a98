"""What the tests of studies share."""

from contextlib import suppress

import numpy as np

from hardthresh.study import QuestionBack, Study, Terms

ATTRIBUTES = 8
TERMS = """
n_nonzero_coefs = 2
budget_per_example = 4
currency = "EUR"
[target]
name = "y"
range = [-20, 20]
""" + "".join(f"[attributes.a{j}]\nrange = [-6, 6]\n" for j in range(ATTRIBUTES))


def truth(number):
    """Return what an examination of an example finds: all attributes by name, and y = a1 - 2 a6 + noise."""
    x = np.random.default_rng([3, number]).standard_normal(ATTRIBUTES).clip(-6, 6)
    noise = 0.1 * np.random.default_rng([4, number]).standard_normal()
    return {f"a{j}": float(value) for j, value in enumerate(x)} | {"y": float(x[1] - 2 * x[6] + noise)}


def answer(study, who="ann", count=1):
    """Answer questions in the order they are asked, and return their numbers."""
    numbers = []
    while len(numbers) < count:
        for question in study.ask(who, count - len(numbers)):
            known = truth(question.number)
            study.tell(question.number, {name: known[name] for name in question.needed}, who)
            numbers.append(question.number)
    return numbers


def asked(study, number):
    """Return the names of what was asked for in a question, the target last."""
    question = study.question(number)
    return [attribute.name for attribute in (*question.attributes, question.target)]


def busy_study(path):
    """Return a study in which every kind of thing has happened, and which has learned twice or more."""
    study = Study.create(path, Terms.parse(TERMS), "ann")
    numbers = answer(study, "ann", 450)
    study.correct(numbers[0], {"y": 1.5}, "ben", reason="=typing error")
    study.withdraw(numbers[1], "ben", reason="<i>withdrew</i> consent")
    skipped, dropped, half, back = (question.number for question in study.ask("cem", 4))
    study.skip(skipped, "cem", bought=asked(study, skipped)[:1], reason="@home")
    known = {name: truth(dropped)[name] for name in asked(study, dropped)}
    study.tell(dropped, known | {next(iter(known)): "missing"}, "cem", subject="+49 170")
    first, second, *_ = asked(study, half)
    study.tell(half, {first: 2.0}, "cem")
    with suppress(QuestionBack):
        study.tell(half, {second: 7.0}, "cem")
    study.give_back(back, "ben")
    return study


CLASSES = """
n_nonzero_coefs = 1
budget_per_example = 2
[target]
name = "ill"
kind = "class"
levels = ["well", "ill"]
[attributes.fever]
unit = "K"
range = [-1, 5]
[attributes.smoker]
kind = "yes/no"
"""


def study_of_classes(path):
    """Return a study of two classes that has learned: those with a fever are ill, but for one in ten."""
    study = Study.create(path, Terms.parse(CLASSES), "ann")
    while not study.learned().questions.size:
        for question in study.ask("ann", 1000):
            number = question.number
            fever = number % 4
            ill = (fever > 1) != (number % 10 == 0)
            values = {"fever": fever, "smoker": number % 3 == 0, "ill": "ill" if ill else "well"}
            study.tell(number, {name: values[name] for name in question.needed}, "ann")
    return study
