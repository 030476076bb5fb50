import asyncio
import os

import pytest

from barnabas.broker.testing.serving import TOKEN_VARIABLE, EphemeralData, Refused, control_token, watch_parent


class TestEphemeralData:
    def test_a_new_folder_is_created_and_removed(self):
        data = EphemeralData(None)
        assert os.path.isdir(data.folder)
        data.end()
        assert not os.path.exists(data.folder)

    def test_one_that_is_empty_or_not_there_may_be_named(self, tmp_path):
        for folder in (tmp_path / "empty", tmp_path / "new" / "deep"):
            data = EphemeralData(str(folder))
            (folder / "t-0").mkdir()
            data.end()
            assert not folder.exists()

    def test_what_a_user_may_want_to_keep_is_never_removed(self, tmp_path):
        (tmp_path / "precious").write_text("")
        with pytest.raises(Refused, match="not empty"):
            EphemeralData(str(tmp_path))
        assert (tmp_path / "precious").exists()

    def test_it_can_be_kept_for_a_restart_and_used_again(self, tmp_path):
        data = EphemeralData(str(tmp_path / "data"))
        data.kept = True
        data.end()
        again = EphemeralData(str(tmp_path / "data"))
        again.end()
        assert not (tmp_path / "data").exists()


class TestControlToken:
    @pytest.fixture(autouse=True)
    def no_token(self, monkeypatch):
        monkeypatch.delenv(TOKEN_VARIABLE, raising=False)

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.8.8"])
    def test_on_the_loopback_interface_a_token_is_generated_and_printed(self, host):
        (first, told), (second, _) = control_token(host), control_token(host)
        assert told
        assert first != second
        assert len(first) >= 32

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
    def test_a_token_must_be_given_where_others_can_connect(self, host, monkeypatch):
        with pytest.raises(Refused, match=TOKEN_VARIABLE):
            control_token(host)
        monkeypatch.setenv(TOKEN_VARIABLE, "secret")
        assert control_token(host) == ("secret", False)


class TestWatchingTheParent:
    async def test_a_parent_that_has_gone_already_is_noticed(self):
        gone = asyncio.Event()
        watch_parent(asyncio.get_running_loop(), os.getppid() + 1, gone.set)
        await asyncio.wait_for(gone.wait(), 30)

    async def test_one_that_is_there_is_not(self):
        gone = asyncio.Event()
        watch_parent(asyncio.get_running_loop(), os.getppid(), gone.set)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gone.wait(), 0.05)

    async def test_without_pidfds_the_parent_is_polled(self, monkeypatch):
        monkeypatch.delattr(os, "pidfd_open", raising=False)
        monkeypatch.setattr("barnabas.broker.testing.serving._SECONDS_BETWEEN_CHECKS", 0.01)
        gone = asyncio.Event()
        parent = os.getppid()
        watch_parent(asyncio.get_running_loop(), parent, gone.set)
        await asyncio.sleep(0)
        assert not gone.is_set()
        monkeypatch.setattr(os, "getppid", lambda: parent + 1)
        await asyncio.wait_for(gone.wait(), 30)
