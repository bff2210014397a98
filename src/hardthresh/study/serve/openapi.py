"""The description of the API by OpenAPI 3.1, with the attributes of one study as the types of values."""

from __future__ import annotations

from typing import Any, get_args

from hardthresh import __version__

from ..attributes import Attribute, Kind
from ..reading import LONGEST_NAME
from ..study import MOST_QUESTIONS
from ..terms import Terms

_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_NAME,
    "description": "Name of the person or instrument.",
}
_NUMBER = {"type": "integer", "minimum": 0, "description": "Number of the question."}
_REASON = {"type": "string", "maxLength": 1000, "description": "For the audit trail."}
_NAMES = {"type": "array", "items": {"type": "string"}}
_MAYBE = {"type": ["number", "null"]}
_CONFIRMED = {**_NAMES, "description": "Attributes whose values are right although they are outside of their ranges."}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A key of the sender for this request. Repeated with the same key and content, as after a lost "
    "reply, it has the same reply and changes nothing; with other content it is refused.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 64},
}
_COUNT = {"type": "integer", "minimum": 1, "maximum": MOST_QUESTIONS}
_WHO = {
    "name": "who",
    "in": "query",
    "description": "Only the questions that this person holds.",
    "schema": {"type": "string"},
}
_REFUSED = {
    "400": "The connection ended before the request was complete.",
    "401": "No token, or a wrong one.",
    "403": "A page of another site sent the request.",
    "408": "The body did not arrive in time.",
    "409": "Not now: the question is with somebody else or was answered, a value has to be confirmed, the budget is "
    "used, the study is closed, or the key was used for something else. `error` says which.",
    "413": "The body is too long.",
    "415": "The body is not JSON by its `Content-Type`.",
    "421": "The header `Host` does not name this server.",
    "422": "Something in the request cannot be used; `message` says what.",
    "429": "Too many wrong tokens; `Retry-After` says when to try again.",
    "431": "The address and the headers are too long.",
    "503": "The file of the study is busy, and `Retry-After` says when to repeat the request with the same key; or it "
    "cannot be written, and `message` says why.",
}


def document(terms: Terms) -> dict[str, Any]:
    """Return the description of the API of a study.

    Parameters
    ----------
    terms : Terms
        Its attributes become the properties of the schema "Values".

    Returns
    -------
    dict
        An OpenAPI document, in plain types.
    """
    receipt, questions = _schema("Receipt"), _object({"questions": _list("Question")})
    values = _schema("Values")
    person = {"who": _NAME}
    answer = {**person, "question": _NUMBER, "values": values, "confirmed": _CONFIRMED}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Study: {terms.title}" if terms.title else "Study",
            "version": __version__,
            "description": "Ask what to measure of the next example, and tell the values that were measured.",
        },
        "security": [{"token": []}],
        "paths": {
            "/api/ask": _post(
                "ask",
                "Return questions: those that the person holds, and new ones up to the count.",
                _object(
                    {**person, "count": {**_COUNT, "default": 1}},
                    ["who"],
                ),
                questions,
            ),
            "/api/tell": _post(
                "tell",
                "Tell values of a question, all or a part of them. A value outside of its range is asked back (409 "
                "with `doubts`); repeat with its name in `confirmed` if it is right.",
                _object({**answer, "subject": _subject()}, ["who", "question", "values"]),
                receipt,
            ),
            "/api/skip": _post(
                "skip",
                "Report that the example of a question is not there; nothing is learned from it.",
                _object(
                    {
                        **person,
                        "question": _NUMBER,
                        "bought": {**_NAMES, "description": "Attributes that were paid for all the same."},
                        "reason": _REASON,
                    },
                    ["who", "question"],
                ),
                receipt,
            ),
            "/api/give-back": _post(
                "giveBack",
                "Give a question back, so that somebody else may have it.",
                _object({**person, "question": _NUMBER, "reason": _REASON}, ["who", "question"]),
                receipt,
            ),
            "/api/correct": _post(
                "correct",
                "Correct values that were told, or the subject (`values` may be empty then). The coefficients "
                "are computed again.",
                _object({**answer, "subject": _subject(), "reason": _REASON}, ["who", "question", "values", "reason"]),
                receipt,
            ),
            "/api/withdraw": _post(
                "withdraw",
                "Withdraw an answered question: the coefficients are computed again without it.",
                _object({**person, "question": _NUMBER, "reason": _REASON}, ["who", "question", "reason"]),
                receipt,
            ),
            "/api/predict": _post(
                "predict",
                "Predict the target of one example by the model as it stands.",
                _object({"values": values}, ["values"]),
                _schema("Prediction"),
                repeatable=False,
            ),
            "/api/questions": _get("questions", "Return the questions that are open.", questions, [_WHO]),
            "/api/status": _get("status", "Return the state of the study.", _schema("Status")),
            "/api/model": _get("model", "Return the model as it stands.", _schema("Model")),
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**_schemas(), "Values": values_schema(terms)},
        },
    }


def values_schema(terms: Terms) -> dict[str, Any]:
    """Return the type of the values of one example: the attributes of a study and its target."""
    return {
        "type": "object",
        "properties": {attribute.name: value_schema(attribute) for attribute in (*terms.attributes, terms.target)},
        "additionalProperties": False,
    }


def value_schema(attribute: Attribute) -> dict[str, Any]:
    """Return the type of one value: null where it could not be measured."""
    words = [attribute.help]
    if attribute.levels:
        schema: dict[str, Any] = {"type": ["string", "null"], "enum": [*attribute.levels, "missing", None]}
    elif attribute.kind == "yes/no":
        schema = {"enum": [True, False, 0, 1, "yes", "no", "missing", None]}
    else:
        number: dict[str, Any] = {"type": "integer" if attribute.kind == "integer" else "number"}
        if attribute.possible is not None:
            number |= {"minimum": attribute.possible[0], "maximum": attribute.possible[1]}
        schema = {"anyOf": [number, {"type": "string"}, {"type": "null"}]}
        if attribute.unit:
            units = ", ".join([attribute.unit, *attribute.units])
            words.append(f"In {attribute.unit}; a text may have one of the units {units}.")
        if attribute.range is not None:
            words.append(f"Has to be confirmed outside of {attribute.range[0]:g} to {attribute.range[1]:g}.")
    description = " ".join(filter(None, words))
    return {**schema, "description": description} if description else schema


def _schemas() -> dict[str, Any]:
    """Return the types of what the API answers."""
    text, boolean, count = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
    maybe_text = {"type": ["string", "null"]}
    limits = {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    panel = _object({"panel": {**text, "description": "Empty if bought alone."}, "attributes": _NAMES})
    doubt = _object({"attribute": text, "value": _MAYBE, "low": _MAYBE, "high": _MAYBE, "unit": text})
    coefficient = _object({"column": text, "attribute": text, "unit": text, "value": {"type": "number"}})
    return {
        "Question": _object(
            {
                "question": _NUMBER,
                "attributes": _NAMES,
                "panels": {"type": "array", "items": panel},
                "price": {"type": "number"},
                "holder": maybe_text,
                "since": {**text, "format": "date-time"},
                "subject": maybe_text,
                "values": {
                    "type": "object",
                    "additionalProperties": {"type": ["number", "string", "null"]},
                    "description": "What was told so far: numbers in the units of the terms, or names of levels.",
                },
                "needed": _NAMES,
                "details": {
                    "type": "object",
                    "description": "By name, what the terms say of each attribute, and of the target.",
                    "additionalProperties": _schema("Details"),
                },
            }
        ),
        "Details": _object(
            {
                "kind": {"enum": [*get_args(Kind)]},
                "unit": text,
                "units": {
                    "type": "object",
                    "description": "Other units that a text may have, and how many of `unit` one of them is.",
                    "additionalProperties": {"type": "number"},
                },
                "range": {**limits, "description": "Values outside have to be confirmed; null without such a range."},
                "possible": {**limits, "description": "Values outside are refused; null without such limits."},
                "levels": {**_NAMES, "description": "Empty for numbers, and for yes and no."},
                "help": text,
            }
        ),
        "Receipt": _object(
            {
                "event": count,
                "question": _NUMBER,
                "complete": boolean,
                "learned": boolean,
                "needed": _NAMES,
                "cost": {"type": "number"},
            }
        ),
        "Status": _object(
            {
                "title": text,
                "closed": boolean,
                "ended": {
                    **text,
                    "description": "Why no more questions can be asked; empty if they can, or the study is closed.",
                },
                "answered": {**count, "description": "Examples that are learned from, at once or with their round."},
                "left_out": {
                    **count,
                    "description": "Examples that are not: a value is missing, they were skipped or withdrawn, or the "
                    "study was closed first.",
                },
                "waiting": {
                    "type": "array",
                    "items": _NUMBER,
                    "description": "Answered questions that will be learned from with their round.",
                },
                "to_come": {**count, "description": "Answers that this round still needs; 0 if no more can be asked."},
                "asked": count,
                "open": {"type": "array", "items": _NUMBER},
                "spent": {"type": "number"},
                "reserved": {"type": "number", "description": "For the open questions."},
                "left": {**_MAYBE, "description": "Of the total budget; null without one."},
                "currency": text,
                "chosen": {**_NAMES, "description": "The columns that a prediction needs."},
                "events": count,
                "progress": {"type": "object", "description": "The errors with their bands, and the learning curve."},
                "drift": {"type": "object", "description": "Tests of early against late examples."},
            }
        ),
        "Model": _object(
            {
                "target": text,
                "unit": text,
                "levels": _NAMES,
                "intercept": _MAYBE,
                "coefficients": {"type": "array", "items": coefficient},
                "price": {"type": "number", "description": "Of the attributes of one prediction."},
                "caution": {**text, "description": "Why the model may be wrong; empty if nothing is known."},
            }
        ),
        "Prediction": _object(
            {
                "target": text,
                "unit": text,
                "prediction": {"type": ["number", "string"]},
                "cautions": {**_NAMES, "description": "A sentence for each value outside of its range."},
                "probability": {"type": "object", "additionalProperties": {"type": "number"}},
            },
            ["target", "unit", "prediction", "cautions"],
        ),
        "Error": _object(
            {
                "error": {**text, "description": "A name for programs."},
                "message": {**text, "description": "What is wrong, and what to do."},
                "doubts": {"type": "array", "items": doubt},
            },
            ["error", "message"],
        ),
    }


def _subject() -> dict[str, Any]:
    return {
        "type": ["string", "null"],
        "maxLength": LONGEST_NAME,
        "description": "What the example is called; no two questions of a study can be about the same subject.",
    }


def _schema(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": _schema(name)}


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties] if required is None else required}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _responses(schema: dict[str, Any], refused: tuple[str, ...]) -> dict[str, Any]:
    answers = {status: {"description": _REFUSED[status], "content": _json(_schema("Error"))} for status in refused}
    return {"200": {"description": "Done.", "content": _json(schema)}, **answers}


def _post(
    name: str, summary: str, body: dict[str, Any], found: dict[str, Any], *, repeatable: bool = True
) -> dict[str, Any]:
    operation = {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": _json({**body, "additionalProperties": False})},
        "responses": _responses(found, tuple(_REFUSED)),
    }
    return {"post": {**operation, "parameters": [_KEY]} if repeatable else operation}


def _get(
    name: str, summary: str, found: dict[str, Any], parameters: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    operation = {
        "operationId": name,
        "summary": summary,
        "responses": _responses(found, ("401", "421", "429", "431", "503")),
    }
    return {"get": {**operation, "parameters": parameters} if parameters else operation}
