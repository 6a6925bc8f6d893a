//! URLs of nodes: `airmail://HOST:PORT[,HOST:PORT…]`.

use airmail_model::{Error, ErrorCode};
use std::fmt;

/// Port of the gRPC API where a URL names none.
pub const DEFAULT_PORT: u16 = 7400;

/// URL that is used where none is given.
pub const DEFAULT_URL: &str = "airmail://127.0.0.1:7400";

/// Address of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address; an IPv6 address without its brackets.
    pub host: String,
    /// Port of the gRPC API.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Parses a URL: one or more addresses of nodes that serve the same data.
///
/// ```
/// let nodes = airmail_client::parse_url("airmail://a.example,10.0.0.7:7500").unwrap();
/// assert_eq!(nodes[0].to_string(), "a.example:7400");
/// assert_eq!(nodes[1].to_string(), "10.0.0.7:7500");
/// ```
///
/// # Errors
/// `INVALID_ARGUMENT` with field `url`, what was found, and the form that it should have.
pub fn parse_url(url: &str) -> Result<Vec<Address>, Error> {
    let rest = url.trim().strip_prefix("airmail://");
    let rest = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    let addresses = rest.and_then(|rest| rest.split(',').map(parse_address).collect());
    addresses.ok_or_else(|| {
        Error::new(ErrorCode::InvalidArgument)
            .field("url")
            .value(url)
            .limit("airmail://HOST:PORT[,HOST:PORT…]")
    })
}

fn parse_address(text: &str) -> Option<Address> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']')?;
            (
                host,
                if rest.is_empty() {
                    None
                } else {
                    Some(rest.strip_prefix(':')?)
                },
            )
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(plain) {
        return None;
    }
    Some(Address {
        host: host.to_owned(),
        port: match port {
            Some(port) => port.parse().ok()?,
            None => DEFAULT_PORT,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> Vec<String> {
        let addresses = parse_url(url).unwrap();
        addresses.iter().map(Address::to_string).collect()
    }

    #[test]
    fn one_or_more_addresses_are_read_and_the_port_may_be_left_out() {
        assert_eq!(shown(DEFAULT_URL), ["127.0.0.1:7400"]);
        assert_eq!(shown("airmail://a:1,b,c:3/"), ["a:1", "b:7400", "c:3"]);
        assert_eq!(
            shown("airmail://[::1]:9,[fe80::2]"),
            ["[::1]:9", "[fe80::2]:7400"]
        );
    }

    #[test]
    fn what_is_no_url_is_refused_with_the_form_it_should_have() {
        for url in [
            "",
            "http://a:1",
            "airmail://",
            "airmail://a:x",
            "airmail://a:70000",
            "airmail://a,,b",
            "airmail://a b",
            "airmail://[::1",
            "airmail://[::1]9",
            "a:7400",
        ] {
            let error = parse_url(url).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument, "{url}");
            assert_eq!((error.field_name(), error.found()), ("url", url));
        }
    }
}
