"""Servers over buckets, as tests start them."""

# The server notices what others wrote within this, and the tests wait for it; the default is 30 s.
POLL_S = 1


def settings_of(options):
    """Configuration keys as keywords, with __ between group and key, as variables of the environment."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    return {f"ZTSERVE_{name.replace('__', '_').upper()}": text for name, text in texts.items()}


def bucket_environment(bucket, place, endpoint=None, **settings):
    """Of a server with cache and state of its own below a folder."""
    return {
        **bucket.engine.environment,
        **({"ZTSERVE_S3_ENDPOINT": endpoint} if endpoint else {}),
        "ZTSERVE_CACHE_DIR": str(place / "cache"),
        "ZTSERVE_STATE_DIR": str(place / "state"),
        **settings_of({"s3__poll_s": POLL_S, **settings}),
    }


class BucketServers:
    """Starts servers over buckets. Each has a cache of its own, unless it is given the place of an earlier one."""

    def __init__(self, start, folder):
        self.start, self.folder, self.count = start, folder, 0

    def place(self):
        self.count += 1
        return self.folder / f"replica-{self.count}"

    def __call__(self, bucket, *arguments, place=None, endpoint=None, environment=None, **settings):
        """Settings are keys: s3__poll_s=5, cache__max_bytes=…; endpoint: a meddler's."""
        place = place or self.place()
        place.mkdir(exist_ok=True)
        made = {**bucket_environment(bucket, place, endpoint, **settings), **(environment or {})}
        server = self.start(bucket.root, *arguments, environment=made)
        server.place, server.bucket = place, bucket
        return server
