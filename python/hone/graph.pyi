from typing import Any

from ._compiler import FEATURES as FEATURES
from ._compiler import Builder as Builder
from ._compiler import Graph as Graph
from ._compiler import Value as Value
from ._compiler import if_else as if_else
from ._compiler import parse_graph as parse
from ._compiler import read_graph as load
from ._compiler import scan as scan
from ._compiler import while_loop as while_loop

def __getattr__(name: str) -> Any: ...  # a function for each op
