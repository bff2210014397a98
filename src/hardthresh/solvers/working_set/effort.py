"""The search effort of the working-set solver, and the sizes of its working sets."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Moves
from .state import STRIDE

LEAST_CAP = 32
"""The cap on new columns, in a prefetch and after the forward path, is never below this. On 160 linear models f is at
most 0.5 % higher with 8 or 16, and lower by 0.5 % with 64 and 0.9 % with 128, at the price of a larger Gram matrix."""
PREFETCH_CAP = STRIDE - 1
"""The cap on new columns of a prefetch, as a multiple of its budget: as many as the forward path adds for each of its
columns on the way to the next checkpoint."""
PARTIAL_CAP = 0.5
"""The cap on new columns at a fit without a part, as a multiple of the size of the whole fit. With 1, f is the same on
240 linear models, and a fit of 50 of 5,000 columns takes a quarter longer."""
FEW, FEW_PER_CHOICE = 250, 10
"""A quadratic of up to 250 + 10k columns has all of them in its working set. Of 51 shapes from 50 x 700 to 20,000 x 200
with k from 2 to 40, those of more columns take 0.9 to 6 times as long with all of them as with screening, and those of
fewer 0.4 to 1.5 times; f is the same on average."""


@dataclass(frozen=True, slots=True)
class Refitting:
    """How to search by refits.

    Attributes
    ----------
    ratio : float
        An answer is doubtful, and calls for a deep search, also if f rises by more than this multiple of what the
        quadratic model says when half of the chosen columns are dropped: always if 0.
    nearby : float
        Up to which ratio of k the supports with fewer and with more columns are searched together with those with k.
    add_drop : tuple of float
        How many columns the add-drop moves add and drop, as shares of k.
    only_cheap : bool
        Whether there is no deep search where refits take long.
    screening_ratio : float
        A column joins the working set if its score is more than this share of the reference score. On 40 classifiers of
        500 x 1,000 f is as low with 0.05 and 0.02, and higher on 2 with 0.2.
    """

    ratio: float
    nearby: float
    add_drop: tuple[float, ...]
    only_cheap: bool = False
    screening_ratio: float = 0.1


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search.

    Attributes
    ----------
    screening_ratio : float
        A column joins the working set if its score is more than this share of the reference score.
    moves : Moves
        The moves of the search; for another objective only how many columns the add-drop moves add and drop.
    prefetch : tuple of float
        The budgets at which the columns are screened before runs reach their own, as shares of the next checkpoint of
        the forward path; for a quadratic only.
    parts : int
        In how many parts the chosen columns are divided to screen the others at the fits without each part, where the
        columns that could replace it have high scores; for a quadratic only, none if 0.
    final_exchanges : int
        For how many chosen columns the exchange with every column of the data is considered in the end.
    recheck_ratio : float
        A run on a quadratic that has reached its budget continues if the score of a column outside its working set is
        more than this share of the reference score: always if 0. Other runs always continue.
    refits : Refitting or None
        How to search by refits if f is not quadratic; None: not at all.
    """

    screening_ratio: float
    moves: Moves
    prefetch: tuple[float, ...] = ()
    parts: int = 0
    final_exchanges: int = 0
    recheck_ratio: float = 0.0
    refits: Refitting | None = None


# Chosen on 240 linear models of eight sizes, 60 x 120 to 500 x 1,000 and 150 x 3,000, with correlated columns. By how
# much f exceeds the lowest value of these ten settings, on average; the share of models with the lowest value; and the
# CPU time relative to "fast":
#
#   "fast"                              1.73 %  56 %  1.0
#   "balanced"                          0.20 %  85 %  1.9
#   "balanced", no partial fits         1.12 %  70 %  1.3
#   "balanced", no replacements         0.26 %  80 %  1.8
#   "balanced", no nearby numbers       0.28 %  82 %  1.8
#   "balanced", add_drop=(0.05,)        0.46 %  77 %  1.6
#   "balanced", recheck ratio 0.8       0.25 %  82 %  1.7
#   "balanced", recheck ratio 0         0.19 %  87 %  2.3
#   "balanced", prefetch=(1.0, 0.64)    0.32 %  85 %  1.9
#   "thorough"                          0.09 %  92 %  6.2
#
# Ratio of refits: of 200 classifiers f was not above abess, forward selection and pursuit on 189 with 2, 192 with 1.5
# and 196 with 1, and without refits on 169, where that alone called for a deep search. With 0 every search is a deep
# one, which takes 1.0 times as long as with 2 on 12 classifiers of 200 to 500 rows, and 1.8, 3.1 and 3.4 times for
# ordered classes, counts and censored times. With 2, Cox's model of 3 of 1,554 genes of 272
# patients is 0.5 % above that of abess and that of 5 is 4 % above that with 0, which is not above abess on either.
EFFORTS = {
    "fast": Effort(screening_ratio=0.35, moves=Moves(nearby=1.4), prefetch=(1.0, 0.64), recheck_ratio=0.8),
    "balanced": Effort(
        screening_ratio=0.2,
        moves=Moves(nearby=1.6, add_drop=(0.1, 0.25, 0.5, 1.0, 2.0), replaced=16),
        prefetch=(1.0,),
        parts=4,
        recheck_ratio=0.4,
        refits=Refitting(ratio=0.0, nearby=1.6, add_drop=(0.5, 1.0), only_cheap=True),
    ),
    "thorough": Effort(
        screening_ratio=0.1,
        prefetch=(1.0, 0.64, 1.0),
        parts=8,
        moves=Moves(nearby=2.0, add_drop=(0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0), replaced=64),
        final_exchanges=16,
        recheck_ratio=0.0,
        refits=Refitting(ratio=0.0, nearby=2.0, add_drop=(0.25, 0.5, 1.0, 2.0)),
    ),
}
