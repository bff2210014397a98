"""The problems of skscope's gallery of examples, written anew: one function each, for any library."""

from . import fusion, glm, graphical, linear, miscellaneous, survival
from .instance import GALLERY, Entry, Instance

__all__ = ["GALLERY", "Entry", "Instance", "fusion", "glm", "graphical", "linear", "miscellaneous", "survival"]
