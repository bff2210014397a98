"""Progress of readings on a cluster: two at a time of one client, whose handlers of a topic are one."""

from hardthresh.designs.cluster import reported_leaves


class Client:
    """What `reported_leaves` asks of a client: one handler for a topic."""

    status = "running"

    def __init__(self):
        self.handlers = {}

    def subscribe_topic(self, topic, handler):
        self.handlers[topic] = handler

    def unsubscribe_topic(self, topic):
        del self.handlers[topic]

    def log(self, *event):
        for handler in self.handlers.values():
            handler((0.0, event))


def test_readings_of_one_client_at_a_time_count_their_own_leaves():
    client, counts = Client(), ([], [])
    one, other = (reported_leaves(client, count.append, 3) for count in counts)
    first, end = one.__enter__()
    second, _ = other.__enter__()
    client.log(first, 0, 10)
    client.log(second, 0, 20)
    other.__exit__(None, None, None)
    client.log(first, 1, 11)
    client.log(second, 1, 21)
    end(30)
    one.__exit__(None, None, None)
    assert counts == ([10, 11, 9], [20])
    assert not client.handlers
