"""A service of slow and fast requests on threads, profiled by pyroscope-io and linked by pyroscope-otel.

usage: python main.py SERVER TRUTH SECONDS
"""

import json
import sys
import threading
import time

import pyroscope
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pyroscope.otel import PyroscopeSpanProcessor

SERVICE = "conformance-python"
server, truth, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])


def planted_hot_path(duration):
    end, s = time.perf_counter() + duration, 0
    while time.perf_counter() < end:
        for i in range(2000):
            s = (s * 31 + i) & 0xFFFFFFFF
    return s


def ordinary_work(duration):
    end, s = time.perf_counter() + duration, 0
    while time.perf_counter() < end:
        for i in range(2000):
            s ^= i << 1
    return s


pyroscope.configure(application_name=SERVICE, server_address=server, sample_rate=100, upload_interval=3)
provider = TracerProvider(resource=Resource.create({"service.name": SERVICE}))
provider.add_span_processor(PyroscopeSpanProcessor())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=server + "/v1/traces", compression=Compression.Gzip)))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer(SERVICE)
done = []


def handle(slow):
    name = "GET /slow" if slow else "GET /fast"
    with tracer.start_as_current_span(name, kind=trace.SpanKind.SERVER) as root:
        with tracer.start_as_current_span("child.compute") as child:
            (planted_hot_path if slow else ordinary_work)(0.15 if slow else 0.02)
        time.sleep(0.01)
    ids = root.get_span_context(), child.get_span_context()
    done.append(
        {"trace": f"{ids[0].trace_id:032x}", "root": f"{ids[0].span_id:016x}", "child": f"{ids[1].span_id:016x}", "slow": slow}
    )


def work(worker, stop):
    i = worker
    while time.time() < stop:
        handle(i % 5 == 0)
        i += 1


stop = time.time() + seconds
workers = [threading.Thread(target=work, args=(worker, stop)) for worker in range(3)]
for one in workers:
    one.start()
for one in workers:
    one.join()
# The profiler sends what it holds at the end of an interval.
time.sleep(4)
pyroscope.shutdown()
provider.shutdown()
with open(truth, "w") as file:
    json.dump(done, file)
