//! Hosts as the authority of a URL has them: a name, or an address; and which of them this machine alone
//! reaches.
//!
//! Names are compared as the name system has them: in lower case, without the dot that may end them. An
//! address is compared as a number, so that `[::ffff:127.0.0.1]` is 127.0.0.1.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Description of a host, for whoever wrote another thing.
const HOST_EXPECTED: &str = "a name such as node.example.org, or an address, without a port";
/// The longest name that the name system has, in bytes.
const NAME_BYTES_MAX: usize = 253;
/// The name of this machine for itself.
const LOCALHOST: &str = "localhost";

/// Whether this machine alone reaches an address: all of 127.0.0.0/8, in IPv6's notation too, and `::1`.
#[must_use]
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// By name, in lower case and without a dot at its end.
    Name(String),
    /// By its address; never an IPv4 address in IPv6's notation.
    Address(IpAddr),
}

impl Host {
    /// Whether it is this machine's loopback, by name or address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Host::Name(_) => self.is_localhost(),
            Host::Address(address) => is_loopback(*address),
        }
    }

    /// Whether it is the name `localhost`.
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        matches!(self, Host::Name(name) if name == LOCALHOST)
    }
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Host, String> {
        if let Some(inner) = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            let address: Ipv6Addr = inner.parse().map_err(|_| HOST_EXPECTED.to_owned())?;
            return Ok(Host::Address(IpAddr::V6(address).to_canonical()));
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Host::Address(address.to_canonical()));
        }
        if text.len() <= NAME_BYTES_MAX && text.split('.').all(is_label) {
            Ok(Host::Name(text.to_ascii_lowercase()))
        } else {
            Err(HOST_EXPECTED.to_owned())
        }
    }
}

fn is_label(label: &str) -> bool {
    let known = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
    !label.is_empty() && label.bytes().all(known)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(address) => write!(f, "{address}"),
        }
    }
}

/// A host and perhaps a port, as in the header `Host` and in an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port, if one is named.
    pub port: Option<u16>,
}

impl FromStr for Authority {
    type Err = String;

    /// Takes `HOST`, `HOST:` and `HOST:PORT`, an IPv6 address in brackets, and nothing else: no user
    /// before it, and no path behind it.
    fn from_str(text: &str) -> Result<Authority, String> {
        // The colons in brackets are the address's own.
        let after_brackets = text.rfind(']').map_or(0, |at| at + 1);
        let colon = text[after_brackets..].find(':');
        let (host, port) = match colon.map(|at| after_brackets + at) {
            None => (text, ""),
            Some(at) => (&text[..at], &text[at + 1..]),
        };
        let digits = port.bytes().all(|letter| letter.is_ascii_digit());
        let number = match (port, digits) {
            ("", _) => None,
            (_, false) => return Err(HOST_EXPECTED.to_owned()),
            (digits, true) => Some(digits.parse().map_err(|_| HOST_EXPECTED.to_owned())?),
        };
        Ok(Authority {
            host: host.parse()?,
            port: number,
        })
    }
}

/// Several hosts: the value of a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(pub Vec<Host>);

impl Hosts {
    /// Whether it is one of them.
    #[must_use]
    pub fn has(&self, host: &Host) -> bool {
        self.0.contains(host)
    }
}

impl FromStr for Hosts {
    type Err = String;

    /// Takes a list as a file has it, `["a", "b"]`, and as a variable has it, `a,b`.
    fn from_str(text: &str) -> Result<Hosts, String> {
        let wrong = || format!("hosts, each {HOST_EXPECTED}");
        let listed: Vec<String> = match text.parse::<toml::Value>() {
            Ok(toml::Value::Array(values)) => {
                let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().ok_or_else(wrong)?
            }
            _ if text.is_empty() => Vec::new(),
            _ => text.split(',').map(|host| host.trim().to_owned()).collect(),
        };
        let hosts = listed.iter().map(|host| host.parse::<Host>());
        hosts
            .collect::<Result<_, _>>()
            .map(Hosts)
            .map_err(|_| wrong())
    }
}

impl fmt::Display for Hosts {
    /// Writes the hosts as a file has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = self.0.iter().map(|host| format!("\"{host}\"")).collect();
        write!(f, "[{}]", quoted.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(text: &str) -> Authority {
        text.parse().unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn this_machines_loopback_is_known_by_every_name_and_address_of_it() {
        for text in [
            "localhost",
            "LocalHost.",
            "127.0.0.1",
            "127.255.3.4",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::FFFF:7f00:1]",
        ] {
            assert!(authority(text).host.is_loopback(), "{text}");
            assert!(authority(&format!("{text}:7401")).host.is_loopback());
        }
        for text in [
            "localhost.example.org",
            "evil-localhost",
            "127.0.0.1.example.org",
            "128.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::2]",
            "[::ffff:10.0.0.1]",
            // Not as addresses are written: a browser would have made it one.
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
        ] {
            assert!(!authority(text).host.is_loopback(), "{text}");
        }
    }

    #[test]
    fn a_port_is_what_stands_behind_the_host() {
        let name = |text: &str| Host::Name(text.to_owned());
        for (text, host, port) in [
            ("Node.Example.ORG:80", name("node.example.org"), Some(80)),
            ("node.example.org.:0", name("node.example.org"), Some(0)),
            ("node", name("node"), None),
            ("node:", name("node"), None),
            (
                "[::1]:7401",
                Host::Address("::1".parse().unwrap()),
                Some(7401),
            ),
            ("[::1]", Host::Address("::1".parse().unwrap()), None),
        ] {
            assert_eq!(authority(text), Authority { host, port }, "{text}");
        }
        for text in [
            "",
            ".",
            ":80",
            "a..b",
            "..",
            "node:80:90",
            "node:+80",
            "node:65536",
            "node:http",
            "me@node",
            "node/path",
            "node path",
            "a,b",
            "::1",
            "[::1",
            "::1]",
            "[::1]x",
            "[::1]]",
            "[]",
            "[127.0.0.1]",
            "[::1%25lo]",
            "nöde",
            "*",
        ] {
            assert!(text.parse::<Authority>().is_err(), "{text}");
        }
        assert!("a".repeat(254).parse::<Host>().is_err());
    }

    #[test]
    fn a_list_is_read_from_a_file_and_from_a_variable() {
        let hosts = |text: &str| text.parse::<Hosts>();
        let three = hosts("node.example.org, ::1,10.0.0.7").unwrap();
        assert_eq!(
            three.to_string(),
            r#"["node.example.org", "::1", "10.0.0.7"]"#
        );
        assert_eq!(hosts(&three.to_string()).unwrap(), three);
        assert!(three.has(&Host::Name("node.example.org".to_owned())));
        assert!(!three.has(&Host::Name("example.org".to_owned())));
        assert_eq!(hosts("[::1]").unwrap().0.len(), 1);
        for none in ["", "[]"] {
            assert_eq!(hosts(none).unwrap(), Hosts::default());
        }
        for wrong in ["a,", "[1]", "[\"a:80\"]", "a:80", "http://a", "a b"] {
            assert!(
                hosts(wrong).unwrap_err().contains("without a port"),
                "{wrong}"
            );
        }
    }
}
