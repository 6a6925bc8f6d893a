//! Refuses requests over HTTP that a browser may have been made to send by somebody else's page.
//!
//! A browser on this machine runs anybody's pages, and sends what they ask for to wherever they say, also
//! to loopback, which nobody else reaches. Two headers tell such requests. `Origin` says which page one is
//! for, unless it is the address that a user typed: it has to be this listener's own, by scheme, host and
//! port. `Host` says by which name the listener was found: a page whose own name leads to a loopback address
//! (DNS rebinding) is of the same origin to its browser, and is told by that name. So on a loopback listener
//! every host that a request names has to be loopback's, or one that the settings allow.
//!
//! A page cannot leave these headers out. Who sends none is no browser, and is answered; so is whoever asks
//! for health or readiness, since probes name hosts as they like and nothing is given away there.

use crate::config::hosts::{Authority, Host, Hosts, is_loopback};
use airmail_model::{Error, ErrorCode};
use axum::http::header::{HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};

/// Paths that everybody may ask for.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];
/// The port of an origin that names none.
const HTTP_PORT: u16 = 80;

/// The rule of one listener. See the module's documentation.
#[derive(Clone, Debug)]
pub struct SameOrigin {
    listener: SocketAddr,
    hosts: Hosts,
}

/// A request that is for somebody else's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The header that says so: `host` or `origin`.
    pub header: &'static str,
    /// The header's value.
    value: String,
    /// A value that would be right.
    wanted: String,
}

impl SameOrigin {
    /// For the listener at an address, which is also found by the names of `hosts`.
    #[must_use]
    pub fn new(listener: SocketAddr, hosts: Hosts) -> SameOrigin {
        SameOrigin { listener, hosts }
    }

    /// Whether a request is to be answered that has come by a connection to the address `reached`.
    ///
    /// # Errors
    /// [`Foreign`], which becomes the answer.
    pub fn check<B>(&self, reached: IpAddr, request: &Request<B>) -> Result<(), Foreign> {
        if PROBES.contains(&request.uri().path()) {
            return Ok(());
        }
        if is_loopback(self.listener.ip()) {
            self.check_hosts(request)?;
        }
        let mut origins = request.headers().get_all(ORIGIN).iter();
        match origins.find(|origin| !self.is_own_origin(reached, origin)) {
            None => Ok(()),
            Some(origin) => Err(Foreign {
                header: "origin",
                value: shown(origin.as_bytes()),
                wanted: format!(
                    "the node's own, as http://{}",
                    SocketAddr::new(reached.to_canonical(), self.listener.port())
                ),
            }),
        }
    }

    /// Every host that a request names: those of its target (an absolute URI, or HTTP/2's `:authority`) and
    /// of each header.
    fn check_hosts<B>(&self, request: &Request<B>) -> Result<(), Foreign> {
        let target = request.uri().authority();
        let target = target.map(|authority| authority.as_str().as_bytes());
        let headers = request.headers().get_all(HOST).iter();
        let mut named = target.into_iter().chain(headers.map(HeaderValue::as_bytes));
        match named.find(|host| !self.is_own_host(host)) {
            None => Ok(()),
            Some(host) => Err(Foreign {
                header: "host",
                value: shown(host),
                wanted: "localhost, a loopback address, or one of http.hosts".to_owned(),
            }),
        }
    }

    fn is_own_host(&self, named: &[u8]) -> bool {
        let own = |host: &Host| host.is_loopback() || self.hosts.has(host);
        authority(named).is_some_and(|authority| own(&authority.host))
    }

    fn is_own_origin(&self, reached: IpAddr, origin: &HeaderValue) -> bool {
        let scheme = b"http://";
        let Some((found, rest)) = origin.as_bytes().split_at_checked(scheme.len()) else {
            return false;
        };
        let Some(Authority { host, port }) = authority(rest) else {
            return false;
        };
        let own = match &host {
            Host::Address(address) => *address == reached.to_canonical(),
            Host::Name(_) => host.is_localhost() && is_loopback(reached),
        };
        found.eq_ignore_ascii_case(scheme)
            && port.unwrap_or(HTTP_PORT) == self.listener.port()
            && (own || self.hosts.has(&host))
    }
}

fn authority(bytes: &[u8]) -> Option<Authority> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl IntoResponse for Foreign {
    /// 403, with the error as plain text that a browser takes for nothing else.
    fn into_response(self) -> Response {
        let plain = [(X_CONTENT_TYPE_OPTIONS, "nosniff")];
        let error = Error::new(ErrorCode::PermissionDenied)
            .field(self.header)
            .value(self.value)
            .limit(self.wanted);
        (StatusCode::FORBIDDEN, plain, format!("{error}\n")).into_response()
    }
}

#[cfg(test)]
mod tests;
