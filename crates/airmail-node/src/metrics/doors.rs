//! Metrics of the node's two ports: connections let in and turned away.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, &'static str)>;

/// Metrics of the ports, `grpc` and `http`. Cheap to share: each metric is a handle.
#[derive(Debug, Default)]
pub(crate) struct DoorMetrics {
    /// Connections of clients that there may be.
    pub(crate) connections_max: Gauge,
    /// Connections that made no request in time.
    pub(crate) silent: Counter,
    http_connections: Gauge,
    http_refused: Family<Labels, Counter>,
    open_to_anyone: Family<Labels, Gauge>,
    turned_away: Family<Labels, Counter>,
    not_accepted: Family<Labels, Counter>,
}

/// A connection that is open, until it is dropped.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl DoorMetrics {
    /// A connection to the port for HTTP.
    pub(crate) fn http_connection(&self) -> Open {
        self.http_connections.inc();
        Open(self.http_connections.clone())
    }

    /// A request was for somebody else's page, as this header says.
    pub(crate) fn http_refused(&self, header: &'static str) {
        let counter = self.http_refused.get_or_create(&vec![("header", header)]);
        counter.inc();
    }

    /// Whether other machines may reach a port.
    pub(crate) fn is_open(&self, door: &'static str, open: bool) {
        let gauge = self.open_to_anyone.get_or_create(&vec![("door", door)]);
        gauge.set(open.into());
    }

    /// A connection was beyond the bound.
    pub(crate) fn turned_away(&self, door: &'static str) {
        let counter = self.turned_away.get_or_create(&vec![("door", door)]);
        counter.inc();
    }

    /// The system gave no connection.
    pub(crate) fn not_accepted(&self, door: &'static str) {
        let counter = self.not_accepted.get_or_create(&vec![("door", door)]);
        counter.inc();
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "airmail_connections_max",
            "Connections that there may be",
            self.connections_max.clone(),
        );
        registry.register(
            "airmail_connections_silent",
            "Connections closed since they made no request in time",
            self.silent.clone(),
        );
        registry.register(
            "airmail_connections_turned_away",
            "Connections beyond the bound, by port",
            self.turned_away.clone(),
        );
        registry.register(
            "airmail_connections_not_accepted",
            "Times that the system gave no connection, by port",
            self.not_accepted.clone(),
        );
        registry.register(
            "airmail_http_connections",
            "HTTP connections open",
            self.http_connections.clone(),
        );
        registry.register(
            "airmail_http_refused",
            "HTTP requests refused since they name another host or origin, by header",
            self.http_refused.clone(),
        );
        registry.register(
            "airmail_open_to_anyone",
            "1 if other machines may reach a port, where nobody is asked who they are",
            self.open_to_anyone.clone(),
        );
    }
}
