from barnabas.broker.transaction.states import BY_LABEL, COMPLETED, PREDECESSORS, TransactionState


def test_every_state_has_its_label_and_its_predecessors():
    assert set(BY_LABEL.values()) == set(PREDECESSORS) == set(TransactionState)
    assert BY_LABEL["PrepareCommit"] is TransactionState.PREPARE_COMMIT
    assert all(state.label in BY_LABEL for state in TransactionState)


def test_what_is_decided_can_only_be_completed():
    for prepared, complete in COMPLETED.items():
        assert prepared.is_prepared
        assert {state for state, before in PREDECESSORS.items() if prepared in before} == {complete}


def test_only_an_idle_id_is_forgotten():
    assert PREDECESSORS[TransactionState.DEAD] == {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    }
