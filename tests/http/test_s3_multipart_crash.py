"""Killed during the parts or the completion of a multipart upload, and started again: no acknowledged part is lost, the file is
whole or absent, and nothing is left."""

import http.client
import random
import threading
import time

import interrupted
import pytest
from s3_parts import UNIT, Upload, part_data, stored
from server_process import ServerProcess
from wire import ask, get

# About the duration of one upload, and of its completion, on an idle machine.
LONGEST_PARTS_S = 0.2
LONGEST_COMPLETION_S = 0.04


def start(root):
    return ServerProcess(root, "--writable", environment={"ZTSERVE_UPLOAD_RESERVE_BYTES": "0"})


class Sender:
    """Sends one upload in threads until it is cut off. Remembers what was acknowledged, and what was only sent."""

    def __init__(self, server, key, generator):
        count = generator.randint(1, 4)
        self.lengths = {number: UNIT for number in range(1, count)} | {count: generator.choice([1, 70_000, UNIT])}
        if generator.random() < 0.2:
            self.lengths[1] += 1
        order = generator.sample(sorted(self.lengths), count)
        # Some parts are sent again, with other bytes.
        order += generator.sample(order, generator.choice([0, 0, 1]))
        self.queue = [(number, generator.randrange(1 << 20)) for number in order]
        self.certain = {}  # number: seed, of an acknowledged part that nothing may have replaced
        self.upload = Upload(server, key)
        self.completion = None
        self.is_completing = False
        self.error = None
        self.lock = threading.Lock()
        # Of two versions that arrive at once, either may count.
        self.one_at_a_time = {number: threading.Lock() for number in self.lengths}

    def data(self, number, seed):
        return part_data(seed, self.lengths[number])

    def send_parts(self):
        while True:
            with self.lock:
                if not self.queue:
                    return
                number, seed = self.queue.pop(0)
            with self.one_at_a_time[number]:
                # Until it is acknowledged, either version may count.
                self.certain.pop(number, None)
                self.upload.put(number, self.data(number, seed))
                self.certain[number] = seed

    def guard(self, action):
        try:
            action()
        except (OSError, http.client.HTTPException):
            pass
        except AssertionError as error:
            self.error = error

    def run(self, count=1):
        self.threads = [threading.Thread(target=self.guard, args=(self.send_parts,)) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def join(self):
        for thread in self.threads:
            thread.join(120)
            assert not thread.is_alive()
        assert self.error is None, self.error

    def complete(self):
        self.is_completing = True
        self.completion = self.upload.complete().body

    def run_completion(self):
        self.threads = [threading.Thread(target=self.guard, args=(self.complete,))]
        self.threads[0].start()

    def whole(self):
        return b"".join(self.data(number, self.certain[number]) for number in sorted(self.lengths))


def check(server, sender):
    """What was acknowledged is there; then the upload is finished, as its client would."""
    upload = sender.upload
    upload.server = server
    found = stored(server, upload.key)
    if sender.is_completing:
        assert found in (None, sender.whole())
        assert found is not None or sender.completion is None, "the completion was acknowledged"
        answer = upload.complete()
        assert sender.completion in (None, answer.body)
    else:
        assert found is None
        listed = upload.listed()
        for number in sender.lengths:
            if number in sender.certain:
                assert listed[number] == (upload.etags[number], sender.lengths[number])
                continue
            seed = 1000 + number
            upload.put(number, sender.data(number, seed))
            sender.certain[number] = seed
        upload.complete()
    assert stored(server, upload.key) == sender.whole()


def run_round(number, server, root, generator):
    sender = Sender(server, f"file{number}.bin", generator)
    is_completing = generator.random() < 0.5
    sender.run(generator.randint(1, 3))
    if is_completing:
        sender.join()
        sender.run_completion()
    time.sleep(generator.uniform(0, LONGEST_COMPLETION_S if is_completing else LONGEST_PARTS_S))
    server.kill()
    sender.join()
    server = start(root)
    try:
        check(server, sender)
        assert ask(server, "DELETE", f"/files/{sender.upload.key}").status == 204
        assert interrupted.hidden_files(root) == set()
        assert get(server, "/v1/uploads").json()["uploads"] == []
    except BaseException:
        server.kill()
        raise
    return server


@pytest.mark.folder("it kills the server and looks into its folder")
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed, rounds", [(1, 30), pytest.param(2, 300, marks=pytest.mark.others)])
def test_what_was_acknowledged_survives_kills_during_multipart_uploads(tmp_path, seed, rounds):
    generator = random.Random(seed)
    server = start(tmp_path)
    for number in range(rounds):
        server = run_round(number, server, tmp_path, generator)
    assert server.stop() == 0
