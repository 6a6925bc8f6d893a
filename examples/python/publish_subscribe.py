"""Publish and subscribe without an SDK and without generated code.

All that this knows of the API it learns from the node, by gRPC reflection.

    pip install grpcio grpcio-reflection
    python publish_subscribe.py [HOST:PORT]
"""

import queue
import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

SERVICE = "airmail.v1.Airmail"
TOPIC = "greetings"
COUNT = 3
PATIENCE_S = 30


class Service:
    """The calls of one service, found by reflection."""

    def __init__(self, channel, database, name):
        self._channel = channel
        pool = descriptor_pool.DescriptorPool(database)
        self._service = pool.FindServiceByName(name)

    def call(self, method_name, request):
        """Calls a method with dicts in the place of messages."""
        method = self._service.methods_by_name[method_name]
        request_class = message_factory.GetMessageClass(method.input_type)
        path = f"/{self._service.full_name}/{method.name}"
        kinds = {
            (False, False): self._channel.unary_unary,
            (False, True): self._channel.unary_stream,
            (True, False): self._channel.stream_unary,
            (True, True): self._channel.stream_stream,
        }
        stub = kinds[method.client_streaming, method.server_streaming](
            path,
            request_serializer=request_class.SerializeToString,
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )
        if method.client_streaming:
            request = (request_class(**each) for each in request)
        else:
            request = request_class(**request)
        return stub(request, timeout=PATIENCE_S)


def requests_until_closed(requests):
    """Yields what is put into the queue, until None."""
    while (request := requests.get()) is not None:
        yield request


def subscribe(airmail):
    """Subscribes from now on, and waits until the node says that it has the subscription."""
    requests = queue.Queue()
    # Without a credit of its own a client is taken to be ready for what it reads.
    requests.put({"hello": {"protocol_min": 1, "protocol_max": 1, "client": "python example"}})
    requests.put({"add": {"subscription": 1, "topic": TOPIC, "start": {"latest": True}}})
    answers = airmail.call("Subscribe", requests_until_closed(requests))
    for answer in answers:
        if answer.WhichOneof("kind") == "status":
            break
    return requests, answers


def receive(answers, count):
    """Yields the next messages of a subscription."""
    for answer in answers:
        if answer.WhichOneof("kind") != "delivery":
            continue
        for message in answer.delivery.messages.messages:
            yield message
            count -= 1
            if count == 0:
                return


def main(address):
    with grpc.insecure_channel(address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        for name in database.get_services():
            print("service", name)
        airmail = Service(channel, database, SERVICE)

        requests, answers = subscribe(airmail)
        for number in range(COUNT):
            message = {"topic": TOPIC, "payload": f"greeting {number}".encode()}
            ack = airmail.call("PublishOne", {"message": message})
            print("published as", ack.sequence)
        for message in receive(answers, COUNT):
            print("received", message.sequence, message.topic, message.payload.decode())
        requests.put(None)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7400")
