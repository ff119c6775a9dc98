//! The service graph: who called whom, how often, how long each side took.
//!
//! A request has two halves: the caller's client (or producer) span, and the callee's server (or consumer) span whose
//! parent it is. Halves wait for each other, however they arrive. A half that waited long enough counts alone where it
//! says who the other side is: a client span by the database or peer that it names, the root of a trace as a request of
//! `user`. The server's half of a span that Zipkin's clients share has the client's id and the client's parent.

use std::collections::{BTreeMap, HashMap, VecDeque};

use spanflame_model::{Span, SpanId, SpanKind, StatusCode, Timestamp, TraceId};

use super::calls::OTHER;
use super::exposition::{Exposition, Histogram};
use crate::shown;

/// Edges of one tenant; more count under `<other>`.
const EDGES_MAX: usize = 5_000;
/// Halves that wait at a time; the oldest have to go first.
const WAITING_MAX: usize = 200_000;
/// How long a half waits for the other, by arrival.
const WAIT_NS: u64 = 30 * 1_000_000_000;
/// Who calls the first service of a trace.
const USER: &str = "user";

/// Where a client names the other side, best first, and what that makes the connection.
const PEERS: [(&str, &str); 7] = [
    ("db.name", DATABASE),
    ("db.namespace", DATABASE),
    ("db.system", DATABASE),
    ("db.system.name", DATABASE),
    ("peer.service", VIRTUAL_NODE),
    ("messaging.system", MESSAGING),
    ("server.address", VIRTUAL_NODE),
];
const DATABASE: &str = "database";
const MESSAGING: &str = "messaging_system";
const VIRTUAL_NODE: &str = "virtual_node";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    client: String,
    server: String,
    connection: &'static str,
}

#[derive(Default)]
struct Requests {
    total: u64,
    failed: u64,
    client: Histogram,
    server: Histogram,
}

/// One side of a request.
struct Half {
    service: String,
    duration_ns: u64,
    failed: bool,
    /// The other side and the connection to it, as far as this side knows.
    peer: Option<(String, &'static str)>,
    messaging: bool,
}

#[derive(Default)]
struct Waiting {
    client: Option<Half>,
    server: Option<Half>,
}

/// The trace and the id of the client's span.
type Call = (TraceId, SpanId);

/// The counters.
#[derive(Default)]
pub(super) struct Graph {
    edges: BTreeMap<Edge, Requests>,
    waiting: HashMap<Call, Waiting>,
    /// In order of arrival; may name calls that no longer wait.
    order: VecDeque<(Timestamp, Call)>,
    /// Halves whose other half is not known.
    unpaired: u64,
    /// Requests that count under `<other>`.
    folded: u64,
}

impl Graph {
    pub(super) fn add(&mut self, span: &Span, received: Timestamp) {
        match span.kind {
            SpanKind::Client | SpanKind::Producer => self.half((span.trace_id, span.span_id), Half::client(span), received, true),
            SpanKind::Server | SpanKind::Consumer => match shown::call_of(span) {
                Some(parent) => self.half((span.trace_id, parent), Half::server(span), received, false),
                None => self.settle(Waiting {
                    client: None,
                    server: Some(Half::server(span)),
                }),
            },
            SpanKind::Internal | SpanKind::Unspecified => {}
        }
    }

    fn half(&mut self, call: Call, half: Half, received: Timestamp, is_client: bool) {
        let is_new = !self.waiting.contains_key(&call);
        let waiting = self.waiting.entry(call).or_default();
        match is_client {
            true => waiting.client = Some(half),
            false => waiting.server = Some(half),
        }
        if waiting.client.is_some() && waiting.server.is_some() {
            if let Some(both) = self.waiting.remove(&call) {
                self.settle(both);
            }
            return;
        }
        if is_new {
            self.order.push_back((received, call));
        }
        while self.waiting.len() > WAITING_MAX || self.order.len() > 2 * WAITING_MAX {
            self.expire_oldest();
        }
    }

    /// Halves that arrived long before `now` wait no longer.
    pub(super) fn expire(&mut self, now: Timestamp) {
        let bound = now.saturating_sub(WAIT_NS);
        while self.order.front().is_some_and(|(received, _)| *received < bound) {
            self.expire_oldest();
        }
    }

    fn expire_oldest(&mut self) {
        if let Some((_, call)) = self.order.pop_front()
            && let Some(alone) = self.waiting.remove(&call)
        {
            self.settle(alone);
        }
    }

    /// Counts a request of which everything is known that ever will be.
    fn settle(&mut self, halves: Waiting) {
        let edge = match (&halves.client, &halves.server) {
            (Some(client), Some(server)) => Some((
                client.service.clone(),
                server.service.clone(),
                if client.messaging || server.messaging { MESSAGING } else { "" },
            )),
            (Some(client), None) => client
                .peer
                .clone()
                .map(|(peer, connection)| (client.service.clone(), peer, connection)),
            (None, Some(server)) if server.peer.is_some() => Some((USER.to_owned(), server.service.clone(), VIRTUAL_NODE)),
            _ => None,
        };
        let Some((client, server, connection)) = edge else {
            self.unpaired += 1;
            return;
        };
        let mut edge = Edge {
            client,
            server,
            connection,
        };
        if self.edges.len() >= EDGES_MAX && !self.edges.contains_key(&edge) {
            self.folded += 1;
            edge = Edge {
                client: OTHER.to_owned(),
                server: OTHER.to_owned(),
                connection: "",
            };
        }
        let requests = self.edges.entry(edge).or_default();
        let halves = [(halves.client, &mut requests.client), (halves.server, &mut requests.server)];
        let mut failed = false;
        for (half, histogram) in halves {
            if let Some(half) = half {
                histogram.add(half.duration_ns);
                failed |= half.failed;
            }
        }
        requests.total += 1;
        requests.failed += u64::from(failed);
    }

    pub(super) fn expose(&self, text: &mut Exposition) {
        self.counter(text, "request_total", "Requests between services.", |requests| requests.total);
        self.counter(text, "request_failed_total", "Requests of which one side failed.", |requests| {
            requests.failed
        });
        let client = "Durations as the caller saw them, in seconds.";
        self.histogram(text, "request_client_seconds", client, |requests| &requests.client);
        let server = "Durations as the callee saw them, in seconds.";
        self.histogram(text, "request_server_seconds", server, |requests| &requests.server);
        let left_out = [
            (
                "traces_service_graph_unpaired_spans_total",
                "Spans whose other side is not known.",
                self.unpaired,
            ),
            (
                "traces_service_graph_folded_total",
                "Requests that count under <other>, because there are too many edges.",
                self.folded,
            ),
        ];
        for (name, help, value) in left_out {
            text.head(name, "counter", help);
            text.counter(name, &[], value);
        }
    }
}

impl Graph {
    fn counter(&self, text: &mut Exposition, name: &str, help: &str, value: fn(&Requests) -> u64) {
        let name = format!("traces_service_graph_{name}");
        text.head(&name, "counter", help);
        for (edge, requests) in &self.edges {
            text.counter(&name, &edge.labels(), value(requests));
        }
    }

    fn histogram(&self, text: &mut Exposition, name: &str, help: &str, histogram: fn(&Requests) -> &Histogram) {
        let name = format!("traces_service_graph_{name}");
        text.head(&name, "histogram", help);
        for (edge, requests) in self.edges.iter().filter(|(_, requests)| histogram(requests).count() > 0) {
            text.histogram(&name, &edge.labels(), histogram(requests));
        }
    }
}

impl Edge {
    fn labels(&self) -> [(&str, &str); 3] {
        [
            ("client", &self.client),
            ("server", &self.server),
            ("connection_type", self.connection),
        ]
    }
}

impl Half {
    fn client(span: &Span) -> Half {
        let peer = PEERS.into_iter().find_map(|(key, connection)| {
            let name = span.attributes.get_str(key).filter(|name| !name.is_empty())?;
            Some((name.to_owned(), connection))
        });
        Half {
            peer,
            messaging: span.kind == SpanKind::Producer,
            ..Half::new(span)
        }
    }

    /// A server knows its caller only where there is none: the root of a trace.
    fn server(span: &Span) -> Half {
        Half {
            peer: shown::call_of(span).is_none().then(|| (USER.to_owned(), VIRTUAL_NODE)),
            messaging: span.kind == SpanKind::Consumer,
            ..Half::new(span)
        }
    }

    fn new(span: &Span) -> Half {
        Half {
            service: span.resource.service().to_owned(),
            duration_ns: span.duration_ns,
            failed: span.status == StatusCode::Error,
            peer: None,
            messaging: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spanflame_model::{Attributes, Resource};

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix_nanos(seconds * 1_000_000_000).expect("in range")
    }

    fn span(id: u64, parent: u64, service: &str, kind: SpanKind) -> Span {
        Span {
            trace_id: TraceId::from_bytes([1; 16]).expect("not zero"),
            span_id: SpanId::from_u64(id).expect("not zero"),
            parent_span_id: SpanId::from_u64(parent),
            trace_state: String::new(),
            flags: 0,
            name: "x".to_owned(),
            kind,
            start: at(0),
            duration_ns: 1,
            status: StatusCode::Unset,
            status_message: String::new(),
            attributes: Attributes::new(),
            events: Vec::new(),
            links: Vec::new(),
            dropped: [0; 3],
            resource: Arc::new(Resource::new([("service.name", service)].into_iter().collect())),
            scope: Arc::default(),
        }
    }

    fn check(graph: &Graph, expected: &[&str]) {
        let edges = graph.edges.iter().map(|(edge, requests)| {
            let Edge {
                client,
                server,
                connection,
            } = edge;
            format!("{client} -> {server} {connection} {}", requests.total)
        });
        assert_eq!(edges.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_halves_of_a_shared_span_are_one_request() {
        let mut graph = Graph::default();
        let mut server = span(1, 9, "pricing", SpanKind::Server);
        server.attributes.insert("zipkin.shared", true);
        graph.add(&server, at(0));
        graph.add(&span(1, 9, "cart", SpanKind::Client), at(1));
        graph.expire(at(60));
        check(&graph, &["cart -> pricing  1"]);
        assert_eq!(graph.unpaired, 0);
    }

    #[test]
    fn a_half_that_waited_counts_by_what_it_says_of_the_other() {
        let mut graph = Graph::default();
        let mut client = span(1, 9, "cart", SpanKind::Client);
        client.attributes.insert("db.system", "redis");
        graph.add(&client, at(0));
        graph.add(&span(2, 9, "cart", SpanKind::Client), at(1));
        graph.expire(at(20));
        check(&graph, &[]);
        graph.expire(at(60));
        check(&graph, &["cart -> redis database 1"]);
        assert_eq!((graph.unpaired, graph.waiting.len(), graph.order.len()), (1, 0, 0));
    }

    #[test]
    fn messages_are_told_from_requests() {
        let mut graph = Graph::default();
        graph.add(&span(1, 9, "shop", SpanKind::Producer), at(0));
        graph.add(&span(2, 1, "mail", SpanKind::Consumer), at(40));
        check(&graph, &["shop -> mail messaging_system 1"]);
    }
}
