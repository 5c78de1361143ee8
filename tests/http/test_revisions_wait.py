"""A client can wait for the next revision, without a thread of the server."""

import concurrent.futures
import signal
import threading

import pytest

from kept import KEEPS, head_of, model, publish, revisions, revisions_path, set_revision
from uploads import put
from wire import Connection, TIMEOUT_S, ask, eventually, get

LONG_S = 300


@pytest.fixture
def server(start_server, tmp_path):
    return start_server(tmp_path, "--writable", environment=KEEPS)


class Waiting:
    """A request for the revision after a commit, which a thread of the test waits for."""

    def __init__(self, server, name, after, query=""):
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.answer = self.pool.submit(get, server, f"{revisions_path(name)}?wait={LONG_S}&after={after}{query}")

    def commit(self):
        answer = self.answer.result(timeout=TIMEOUT_S)
        assert answer.status == 200, answer
        return answer.json()["revisions"][0]["commit"]


def open_requests(server):
    lines = get(server, "/metrics").body.decode().splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith("ztserve_http_requests_in_progress"))


def is_waiting(server, count=1):
    # The request for the metrics is one.
    return open_requests(server) > count


def test_known_revision_is_answered_when_the_next_is_there(server):
    first = publish(server, "tiny", 1)
    waiting = Waiting(server, "tiny", first)
    eventually(lambda: is_waiting(server))
    assert not waiting.answer.done()
    second = publish(server, "tiny", 2)
    assert waiting.commit() == second


def test_other_revision_is_answered_at_once(server):
    first, second = (publish(server, "tiny", seed) for seed in (1, 2))
    assert Waiting(server, "tiny", first).commit() == second
    assert Waiting(server, "tiny", "0" * 40).commit() == second


def test_wait_ends_with_its_time(server):
    first = publish(server, "tiny", 1)
    answer = get(server, f"{revisions_path('tiny')}?wait=1&after={first}")
    assert (answer.status, answer.json()["revisions"][0]["commit"]) == (200, first)
    assert get(server, f"{revisions_path('tiny')}?wait=0&after={first}").status == 200


def test_other_changes_of_the_repository_do_not_end_the_wait(server):
    first = publish(server, "tiny", 1)
    waiting = Waiting(server, "tiny", first)
    eventually(lambda: is_waiting(server))
    assert set_revision(server, "tiny", "v1", first).status == 201
    assert set_revision(server, "tiny", "work", first, "branch").status == 201
    publish(server, "other", 2)
    second = publish(server, "tiny", 3)
    assert waiting.commit() == second


def test_branch_that_moves_ends_the_wait_for_it(server):
    first, second = (publish(server, "tiny", seed) for seed in (1, 2))
    assert set_revision(server, "tiny", "work", first, "branch").status == 201
    waiting = Waiting(server, "tiny", first, "&revision=work")
    eventually(lambda: is_waiting(server))
    assert set_revision(server, "tiny", "work", second, "branch").status == 200
    assert waiting.commit() == second


def test_many_clients_wait_without_occupying_the_server(server):
    """More than there are workers and loops."""
    first = publish(server, "tiny", 1)
    connections = [Connection(server) for _ in range(100)]
    with concurrent.futures.ThreadPoolExecutor(len(connections)) as pool:
        target = f"{revisions_path('tiny')}?wait={LONG_S}&after={first}"
        answers = [pool.submit(connection.ask, "GET", target) for connection in connections]
        eventually(lambda: is_waiting(server, len(connections)))
        for _ in range(5):
            assert get(server, "/v1/models/tiny/objects/w/data/statistics").status == 200
        second = publish(server, "tiny", 2)
        for answer in answers:
            assert answer.result(timeout=TIMEOUT_S).json()["revisions"][0]["commit"] == second
    for connection in connections:
        connection.http.close()


def test_connection_can_wait_again(server):
    commit = publish(server, "tiny", 1)
    with Connection(server) as connection:
        for seed in (2, 3, 4):
            timer = threading.Thread(target=publish, args=(server, "tiny", seed))
            timer.start()
            answer = connection.ask("GET", f"{revisions_path('tiny')}?wait={LONG_S}&after={commit}")
            timer.join()
            assert answer.json()["revisions"][0]["commit"] != commit
            commit = head_of(server, "tiny")


def test_client_that_leaves_ends_its_wait(server):
    first = publish(server, "tiny", 1)
    connection = Connection(server)
    connection.send("GET", f"{revisions_path('tiny')}?wait={LONG_S}&after={first}")
    eventually(lambda: is_waiting(server))
    connection.http.close()
    eventually(lambda: not is_waiting(server))
    assert revisions(server, "tiny")[0]["commit"] == first


def test_shutdown_answers_those_that_wait(server):
    first = publish(server, "tiny", 1)
    waiting = Waiting(server, "tiny", first)
    eventually(lambda: is_waiting(server))
    server.signal(signal.SIGTERM)
    assert waiting.commit() == first
    assert server.wait() == 0


def test_waiting_for_a_model_without_revisions_is_answered(server):
    assert ask(server, "GET", f"{revisions_path('none')}?wait={LONG_S}&after={'0' * 40}").status == 404


def test_nothing_is_waited_for_where_nothing_is_kept(start_server, tmp_path):
    server = start_server(tmp_path, "--writable")
    put(server, "tiny", model(1))
    for query in ("", f"?wait={LONG_S}&after={'0' * 40}"):
        assert revisions(server, "tiny", query) == []
