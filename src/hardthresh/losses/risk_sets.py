"""The risk sets of censored times, and sums over them for some predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

_RANGE = 300.0
"""By how much log S may rise within one prefix sum: e^300 times the number of rows is far below the largest double, and
rows that are smaller by e^-300 than others of their risk set do not count."""


@dataclass(frozen=True, slots=True, eq=False)
class RiskSets:
    """The order of the times: what the partial likelihood of some targets is made of, whatever the predictions.

    Rows are sorted by stratum, and within one by time, the latest first. A *slot* has the rows that join the risk set
    of an event time: those at this time, and the censored ones up to the next event time. The risk set of slot g has
    the rows of all slots of its stratum up to g. Rows that are in no risk set belong to no slot.

    Attributes
    ----------
    n_rows : int
        The number of rows of the targets.
    order : array of int, shape (m,)
        The rows that belong to slots, by slot; in each those that die at its event time first.
    log_weights, event_weights : array, shape (m,)
        The logarithm of the weight of each, and the weight of its event, 0 if it is censored.
    slot : array of int, shape (m,)
        The slot of each.
    starts : array of int, shape (n_slots,)
        Where each slot starts.
    bounds : array of int, shape (n_strata + 1,)
        The first slot of each stratum, and the number of slots.
    times : array, shape (n_slots,)
        The event time of each slot.
    deaths : array, shape (n_slots,)
        The weight of the events of each slot.
    dies : array of bool, shape (m,)
        Which rows are tied deaths of Efron's kind: those in slots with several.
    term_slot, term_share, term_weight : array, shape (n_terms,)
        For each logarithm in the likelihood its slot, the share of the tied deaths that it leaves out, and its weight.
    """

    n_rows: int
    order: np.ndarray
    log_weights: np.ndarray
    event_weights: np.ndarray
    slot: np.ndarray
    starts: np.ndarray
    bounds: np.ndarray
    times: np.ndarray
    deaths: np.ndarray
    dies: np.ndarray
    term_slot: np.ndarray
    term_share: np.ndarray
    term_weight: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray, *, efron: bool) -> RiskSets:
        """Return the risk sets of targets, as `Cox` describes them, with weights."""
        kept = np.flatnonzero(weights > 0)
        time, event = y[kept, 0], y[kept, 1] > 0
        stratum = y[kept, 2] if y.shape[1] == 3 else np.zeros(kept.size)
        by = np.lexsort((~event, -time, stratum))
        kept, time, event, stratum = kept[by], time[by], event[by], stratum[by]
        new_stratum = np.r_[True, stratum[1:] != stratum[:-1]]
        new_time = new_stratum | np.r_[True, time[1:] != time[:-1]]
        opens = new_time & event  # deaths come first at their time; censored rows before the next event join later ones
        number = np.cumsum(new_time) - 1
        has_event = np.bincount(number, weights=event) > 0
        # a row joins the first slot whose event time is not later: at its own time, or the next earlier one
        slot_of_time: np.ndarray = np.cumsum(has_event) - has_event
        slot: np.ndarray = slot_of_time[number]
        of_stratum = np.cumsum(new_stratum) - 1
        slot_stratum = of_stratum[opens]
        inside = slot < slot_stratum.size
        inside[inside] = slot_stratum[slot[inside]] == of_stratum[inside]
        kept, event, slot = kept[inside], event[inside], slot[inside]
        by = np.lexsort((~event, slot))
        kept, event, slot = kept[by], event[by], slot[by]
        omega, n_slots = weights[kept], slot_stratum.size
        counts = np.bincount(slot, weights=event, minlength=n_slots).astype(np.int64)
        deaths = np.bincount(slot, weights=omega * event, minlength=n_slots)
        m = counts if efron else np.ones(n_slots, dtype=np.int64)
        term_slot = np.repeat(np.arange(n_slots), m)
        share = (np.arange(term_slot.size) - np.repeat(np.cumsum(m) - m, m)) / m[term_slot]
        return cls(
            len(y), kept, np.log(omega), omega * event, slot, np.searchsorted(slot, np.arange(n_slots)),
            np.searchsorted(slot_stratum, np.arange(of_stratum[-1] + 2)), time[opens], deaths,
            event & (m[slot] > 1), term_slot, share, deaths[term_slot] / m[term_slot],
        )  # fmt: skip

    @property
    def n_slots(self) -> int:
        """The number of event times, those of each stratum for themselves."""
        return self.starts.size

    def strata(self) -> list[slice]:
        """Return the slots of each stratum that has some."""
        pairs = zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)
        return [slice(first, last) for first, last in pairs if last > first]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of numbers, or of rows of them, over the rows of each slot."""
        total: np.ndarray = np.add.reduceat(values, self.starts, axis=0)
        return total

    def at(self, u: np.ndarray) -> AtPredictions:
        """Return the sums over the risk sets for some predictions."""
        return AtPredictions(self, u[self.order] + self.log_weights)


class AtPredictions:
    r"""Sums over risk sets, for some predictions.

    Parameters
    ----------
    sets : RiskSets
        The risk sets.
    log_risk : array, shape (m,)
        :math:`\log(\omega_i e^{u_i})` of the rows in slots.

    Attributes
    ----------
    log_sums : array, shape (n_slots,)
        log S of the risk set of each slot; it does not fall within a stratum.
    share : array, shape (m,)
        The share of each row in the risk set that it joins first, at most 1.
    term_rest : array, shape (n_terms,)
        The share of S that is left in each term: 1 less that of the tied deaths that it leaves out.
    """

    def __init__(self, sets: RiskSets, log_risk: np.ndarray) -> None:
        self.sets, self.log_risk = sets, log_risk
        largest = np.maximum.reduceat(log_risk, sets.starts)
        of_slot = largest + np.log(sets.sums(np.exp(log_risk - largest[sets.slot])))
        self.log_sums = np.concatenate([np.logaddexp.accumulate(of_slot[part]) for part in sets.strata()])
        self.share = np.exp(log_risk - self.log_sums[sets.slot])
        self.dead_share = sets.sums(np.where(sets.dies, self.share, 0.0))
        self.term_rest = 1.0 - sets.term_share * self.dead_share[sets.term_slot]

    def shared_sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of numbers, or of rows of them, of all examples over the rows of each slot, times `share`.

        As a product with a sparse matrix it takes half the time of `RiskSets.sums`, and no copy in the order of slots.
        """
        sets = self.sets
        ends = np.append(sets.starts, sets.order.size)
        rows = csr_array((self.share, sets.order, ends), shape=(sets.n_slots, values.shape[0]))
        found: np.ndarray = rows @ values
        return found

    def per_slot(self, per_term: np.ndarray) -> np.ndarray:
        """Return the sum of numbers over the terms of each slot."""
        return np.bincount(self.sets.term_slot, weights=per_term, minlength=self.sets.n_slots)

    def pieces(self) -> list[tuple[slice, float]]:
        """Return slots within which log S rises by so little that sums need no logarithms, with the first log S."""
        found = []
        for part in self.sets.strata():
            first = part.start
            while first < part.stop:
                start = float(self.log_sums[first])
                last = first + int(np.searchsorted(self.log_sums[first : part.stop], start + _RANGE, side="right"))
                found.append((slice(first, last), start))
                first = last
        return found

    def risk_means(self, values: np.ndarray) -> np.ndarray:
        """Return the mean over each risk set of numbers, or of rows of them, given their `share`-weighted slot sums."""
        means = np.empty_like(values)
        carried, before, stratum_starts = 0.0 * values[:1], 0.0, set(self.sets.bounds.tolist())
        for part, start in self.pieces():
            scale = np.exp(self.log_sums[part] - start)
            scale = scale if values.ndim == 1 else scale[:, None]
            sums = np.cumsum(values[part] * scale, axis=0)
            if part.start not in stratum_starts:
                sums += carried * np.exp(before - start)
            np.divide(sums, scale, out=means[part])
            carried, before = means[part.stop - 1 : part.stop], float(self.log_sums[part.stop - 1])
        return means

    def later(self, values: np.ndarray) -> np.ndarray:
        """Return for each slot the sum of numbers over it and the later slots of its stratum, each divided by its S.

        The sum is given as a multiple of 1/S of the slot itself.
        """
        totals = np.empty_like(values)
        carried, after, stratum_ends = 0.0, 0.0, set(self.sets.bounds.tolist())
        for part, start in reversed(self.pieces()):
            scale = np.exp(start - self.log_sums[part])
            sums = np.cumsum((values[part] * scale)[::-1])[::-1]
            if part.stop not in stratum_ends:
                sums = sums + carried * np.exp(start - after)
            totals[part] = sums / scale
            carried, after = float(totals[part.start]), float(self.log_sums[part.start])
        return totals

    def spread(self, of_set: np.ndarray, of_deaths: np.ndarray) -> np.ndarray:
        """Return for each row its risk times the sum over the risk sets it is in of numbers divided by S.

        Tied deaths get the numbers of their slot in `of_deaths` besides.
        """
        slot = self.sets.slot
        found: np.ndarray = self.share * (self.later(of_set)[slot] + np.where(self.sets.dies, of_deaths[slot], 0.0))
        return found
