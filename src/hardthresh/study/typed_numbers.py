"""Advice on texts that were typed in place of a number."""

from __future__ import annotations

import re

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?!\d).*|\d{1,2}[./]\d{1,2}[./]\d{2,4}(?!\d).*", re.ASCII)
_THOUSANDS = re.compile(r"([+-]?[1-9]\d{0,2}([ _'’,])\d{3}(?:\2\d{3})*(?:[.,]\d+)?)(?![\d.,eE])(.*)", re.ASCII)
_AMBIGUOUS = re.compile(r"[+-]?\d+,\d{3}")
_COMMA = re.compile(r"([+-]?\d*,\d+)(?![\d.,eE])(.*)", re.ASCII)
_FRACTION = re.compile(r"[+-]?\d+ ?/ ?\d+.*", re.ASCII)


def advice_on(text: str) -> str:
    """Return the end of a message that refuses a text in place of a number; "" if there is no advice.

    Examples
    --------
    >>> advice_on("1 000"), advice_on("6,4"), advice_on("2026-11-28"), advice_on("much")
    ('; write 1000', '; write a point, not a comma: 6.4', '; that looks like a date', '')
    >>> advice_on("1,200")
    '; write a point, not a comma: 1.200, or if thousands were meant 1200'
    """
    if text[:1] in ("<", "≤"):
        return "; report what is below the detection limit as missing, or by a rule fixed beforehand, as half the limit"
    if text[:1] in (">", "≥"):
        return "; report what is above the limit of the instrument as missing, or by a rule fixed beforehand"
    if _DATE.fullmatch(text):
        return "; that looks like a date"
    if found := _THOUSANDS.fullmatch(text):
        number, mark, rest = found.groups()
        whole = number.replace(mark, "").replace(",", ".")
        if _AMBIGUOUS.fullmatch(number):
            point = number.replace(",", ".")
            return f"; write a point, not a comma: {point}{rest}, or if thousands were meant {whole}{rest}"
        return f"; write {whole}{rest}"
    if found := _COMMA.fullmatch(text):
        return f"; write a point, not a comma: {found[1].replace(',', '.')}{found[2]}"
    if _FRACTION.fullmatch(text):
        return "; give one number, a fraction with a decimal point, such as 0.5"
    return "; write a point, not a comma" if re.match(r"[+-]?[\d.]+,", text, re.ASCII) else ""
