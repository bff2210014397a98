"""Formatting of numbers as text."""

from __future__ import annotations

from math import floor, isfinite, lgamma, log, log10

_ROUNDING = 1e-12  # errors below this share of their mean are its rounding: a thousand units in the last place
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(x: float) -> str:
    """Return a number with three significant digits.

    Examples
    --------
    >>> number(0.12345), number(-1234567.0), number(20_000), number(1.5e-7)
    ('0.123', '−1.23 × 10⁶', '20,000', '1.5 × 10⁻⁷')
    """
    if not isfinite(x):
        return "not a number" if x != x else "infinite" if x > 0 else "−infinite"
    if 1e3 <= abs(x) < 1e6:
        text = f"{x:,.0f}"
    else:
        text, _, exponent = f"{x:.3g}".partition("e")
        text += f" × 10{str(int(exponent)).translate(_RAISED)}" if exponent else ""
    return text.replace("-", "−")


def total(x: float) -> str:
    """Return a sum of weights or degrees of freedom: a whole number with all its digits, others as `number`.

    Examples
    --------
    >>> total(8_000_016.0), total(12.5), total(float("inf"))
    ('8,000,016', '12.5', 'infinite')
    """
    return f"{x:,.0f}" if x == x and abs(x) < 1e15 and x == floor(x) else number(x)


def signed(x: float) -> str:
    """Return a number with its sign, also +.

    Examples
    --------
    >>> signed(0.5), signed(-1.25), signed(0.0), signed(1234.5)
    ('+0.500', '−1.25', '0', '+1,234')
    """
    text = f"{abs(x):#.3g}".rstrip(".") if 1e-4 <= abs(x) < 1e3 else number(abs(x))
    return ("+" if x > 0 else "−" if x < 0 else "") + text


def mean_and_error(mean: float, error: float) -> str:
    """Return a mean with its standard error, both rounded to two significant digits of the error.

    Examples
    --------
    >>> mean_and_error(0.87692, 0.0291), mean_and_error(1234.5, 56.0), mean_and_error(0.5, 7e-17)
    ('0.877 ± 0.029', '1,234 ± 56', '0.5 ± 0')
    """
    if not (isfinite(error) and error > 0 and isfinite(mean)):
        return f"{number(mean)} ± {number(error)}"
    if error < _ROUNDING * abs(mean):
        return f"{number(mean)} ± 0"
    decimals = 1 - floor(log10(error))
    if decimals > 6:
        return f"{number(mean)} ± {number(error)}"
    return f"{mean:,.{max(decimals, 0)}f} ± {error:,.{max(decimals, 0)}f}".replace("-", "−")


def percent(share: float) -> str:
    """Return a share in whole per cent; 0 % and 100 % only if they are exact.

    Examples
    --------
    >>> percent(0.8), percent(0.999), percent(1.0)
    ('80 %', '99 %', '100 %')
    >>> percent(-0.25), percent(1.001), percent(-0.001)
    ('−25 %', '101 %', '−1 %')
    """
    whole = round(100 * share)
    if (whole == 0 and share != 0) or (whole == 100 and share != 1):
        whole += 1 if 100 * share > whole else -1
    return f"{whole} %".replace("-", "−")


def signed_percent(share: float) -> str:
    """Return a change as per cent with its sign and two significant digits.

    Examples
    --------
    >>> signed_percent(0.0123), signed_percent(-0.2), signed_percent(0.0)
    ('+1.2 %', '−20 %', '+0 %')
    """
    return f"{'−' if share < 0 else '+'}{100 * abs(share):.2g} %"


def choices(n: int, k: int) -> str | None:
    """Return the approximate number of subsets of size k of n, or None if it is at most 10^10.

    Examples
    --------
    >>> choices(2000, 6), choices(10**6, 10**3), choices(10, 3)
    ('10¹⁷', '10³⁴³²', None)
    """
    digits = (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)) / log(10)
    return f"10{str(round(digits)).translate(_RAISED)}" if digits > 10 else None


def is_number(text: str) -> bool:
    """Return whether a text is a number.

    Examples
    --------
    >>> is_number("1e-3"), is_number("1,5")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
