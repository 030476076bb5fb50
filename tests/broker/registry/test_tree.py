"""The tree and its stagings, held against a model that copies everything."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.registry.errors import BadVersion, Conflict, NoChildrenForEphemerals, NodeExists, NoNode, NotEmpty
from barnabas.broker.registry.registry import Node
from barnabas.broker.registry.tree import Staging, Tree
from barnabas.broker.registry.tree_operations import ANY_VERSION, Check, Create, Delete, Operation, Set

Model = dict[str, Node]

paths = st.sampled_from(["/a", "/b", "/a/c", "/a/c/d", "/a/e", "/b/c"])
data = st.sampled_from([b"", b"x"])
versions = st.sampled_from([ANY_VERSION, ANY_VERSION, 0, 1])
operations = st.one_of(
    st.builds(Create, paths, data, st.booleans(), st.just(False)),
    st.builds(Create, paths, data, st.just(False), st.just(False)),
    st.builds(Set, paths, data, versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)
transactions = st.lists(st.lists(operations, max_size=5), max_size=12)


def model_children(model: Model, path: str) -> list[str]:
    below = "/" if path == "/" else path + "/"
    return sorted(p.removeprefix(below) for p in model if p.startswith(below) and p.count("/") == below.count("/"))


def do(model: Model, operation: Operation) -> None:
    path = operation.path
    if isinstance(operation, Create):
        parent = path.rpartition("/")[0]
        if path in model:
            raise NodeExists(path)
        if parent and parent not in model:
            raise NoNode(parent)
        if parent and model[parent].ephemeral:
            raise NoChildrenForEphemerals(path)
        model[path] = Node(operation.data, 0, operation.ephemeral)
        return
    if path not in model:
        raise NoNode(path)
    if operation.version not in (ANY_VERSION, model[path].version):
        raise BadVersion(path)
    if isinstance(operation, Set):
        model[path] = Node(operation.data, model[path].version + 1, model[path].ephemeral)
    elif isinstance(operation, Delete):
        if model_children(model, path):
            raise NotEmpty(path)
        del model[path]


@given(transactions, st.integers(1, 4))
def test_transactions_in_groups(transactions: list[list[Operation]], group_size: int) -> None:
    tree = Tree()
    model: Model = {}
    for start in range(0, len(transactions), group_size):
        group = Staging(tree)
        for transaction in transactions[start : start + group_size]:
            own, copy = Staging(group), dict(model)
            expected: Conflict | None = None
            found: Conflict | None = None
            try:
                for operation in transaction:
                    do(copy, operation)
                model = copy
            except Conflict as conflict:
                expected = conflict
            try:
                for operation in transaction:
                    own.stage(operation)
                group.absorb(own)
            except Conflict as conflict:
                found = conflict
            assert (type(found), found and found.path) == (type(expected), expected and expected.path)
        tree.apply(group.changes)
        for path in ("/a", "/b", "/a/c", "/a/c/d", "/a/e", "/b/c"):
            assert tree.find(path) == model.get(path)
            if path in model:
                assert tree.children(path) == model_children(model, path)
        assert tree.children("/") == model_children(model, "/")
