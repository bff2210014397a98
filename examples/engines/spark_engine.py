"""An engine on Spark: five methods, with the bits of the engines of the package. It needs Java and pyspark.

context = SparkContext("spark://scheduler:7077")  # hardthresh is installed on its workers
model = SparseLinearRegression(n_nonzero_coefs=15).fit(SparkEngine(from_parquet("folder", target="y"), context))
"""

from functools import partial
from operator import itemgetter

from pyspark import StorageLevel

from hardthresh.core.errors import HardThreshError
from hardthresh.designs.engine import both_of_leaf, kept_alone, leaves, not_empty, picked, stacked, sum_leaf
from hardthresh.designs.tree import FAN, add


class KeptOnSpark:
    """Rows that tasks have left in the memory of the workers, and on their discs beyond it."""

    def __init__(self, found):
        self.found = found.persist(StorageLevel.MEMORY_AND_DISK)

    def release(self):
        self.found.unpersist()

    __enter__, __exit__ = (lambda self: self), (lambda self, *raised: self.release())


class SparkEngine:
    def __init__(self, blocks, context, leaf_size=8):
        self.blocks, self.context, self.leaf_size, self.readings = blocks, context, leaf_size, 0
        self._leaves = self._sent(enumerate(leaves(blocks, leaf_size)))

    def sweep(self, task, *args, on=None, columns=None):
        table = self._read(columns) if on is None else on.found.mapValues(itemgetter(1))
        return self._added(table.mapValues(_tried(lambda leaf: (sum_leaf(leaf, task, args), None))))

    def keep(self, task, *args, columns=None):
        return self.both(partial(kept_alone, task), *args, columns=columns)[1]

    def both(self, task, *args, columns=None):
        kept = KeptOnSpark(self._read(columns).mapValues(_tried(lambda leaf: both_of_leaf(leaf, task, args))))
        try:
            return self._added(kept.found), kept
        except BaseException:
            kept.release()
            raise

    def rows(self, picks):
        pairs = [pick if isinstance(pick, tuple) else (pick, slice(None)) for pick in picks]
        sent = self._sent((self.blocks.part(number, number + 1), chosen) for number, chosen in pairs)
        return stacked(sent.map(lambda block: picked(block[0], (0, block[1]))).collect())

    def on_blocks(self, blocks):
        other = SparkEngine(blocks, self.context, self.leaf_size)
        other.readings = self.readings
        return other

    def _sent(self, items):
        items = [*items]
        return self.context.parallelize(items, max(1, len(items)))  # a task each

    def _read(self, columns):
        self.readings += 1
        return self._leaves if columns is None else self._leaves.mapValues(lambda leaf: leaf.select(columns))

    def _added(self, found):
        parts, count = found.mapValues(itemgetter(0)), found.getNumPartitions()
        while count > FAN:  # the tree of all engines: Spark's own reductions add in other groups
            count = -(-count // FAN)
            parts = parts.groupBy(lambda part: part[0] // FAN, count).mapValues(_node())
        total = _node()(parts.collect())
        if isinstance(total, HardThreshError):
            raise total
        return not_empty(total)


def _tried(work):
    """Return a function that gives an error of the package in place of sums: another try would raise it again."""

    def tried(leaf):
        try:
            return work(leaf)
        except HardThreshError as error:
            return error, None

    return tried


def _node():
    """Return what adds up the children of a node, in the order of blocks; an inner function is sent with its code."""

    def node(children):
        parts = [part for _, part in sorted(children, key=itemgetter(0))]
        return next((part for part in parts if isinstance(part, HardThreshError)), None) or add(parts)

    return node
