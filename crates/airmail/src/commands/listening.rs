//! Addresses on which a command listens: this machine alone reaches them, unless anyone may come.

use crate::cli::UsageError;
use airmail_node::config::hosts::is_loopback;
use anyhow::Context as _;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

/// Listens on the address of a flag. A name has every address that the system knows for it; with `anyone`
/// these may be beyond loopback.
///
/// # Errors
/// Wrong usage ([`UsageError`]): what is no address, or may not be listened on. An address in use.
pub(super) fn listen(flag: &str, address: &str, anyone: bool) -> anyhow::Result<TcpListener> {
    listen_or(flag, address, anyone, "let anyone in with --allow-anyone")
}

/// Listens as [`listen`] does, beyond loopback only where `open`; `remedy` says how that is asked for.
///
/// # Errors
/// Those of [`listen`].
pub(super) fn listen_or(
    flag: &str,
    address: &str,
    open: bool,
    remedy: &str,
) -> anyhow::Result<TcpListener> {
    let resolved: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| UsageError(format!("{flag} {address}: {error}: HOST:PORT is wanted")))?
        .collect();
    if !open {
        refuse_others(flag, address, &resolved, remedy)?;
    }
    TcpListener::bind(resolved.as_slice())
        .with_context(|| format!("cannot listen on {address} ({flag})"))
}

/// Refuses addresses of which any is beyond loopback.
fn refuse_others(
    flag: &str,
    address: &str,
    resolved: &[SocketAddr],
    remedy: &str,
) -> Result<(), UsageError> {
    let open = resolved.iter().find(|one| !is_loopback(one.ip()));
    let Some(open) = open else { return Ok(()) };
    let ip = open.ip();
    let beyond = if ip.is_unspecified() {
        format!("{ip} is every address of this machine")
    } else {
        format!("{ip} is no loopback address")
    };
    Err(UsageError(format!(
        "{flag} {address}: {beyond}, and whoever reaches it is not asked who they are: listen on \
         127.0.0.1:{port}, or {remedy}",
        port = open.port()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_beyond_loopback_is_one_too_many() {
        let refused = |addresses: &[&str]| {
            let parsed = addresses.iter().map(|address| address.parse().unwrap());
            let parsed: Vec<SocketAddr> = parsed.collect();
            refuse_others("--listen", "node:7400", &parsed, "--allow-anyone").err()
        };
        for loopback in [&["127.0.0.1:7400"][..], &["[::1]:7400", "127.1.2.3:7400"]] {
            assert!(refused(loopback).is_none(), "{loopback:?}");
        }
        for (addresses, ip) in [
            (&["10.0.0.7:7400"][..], "10.0.0.7 is no loopback"),
            (
                &["127.0.0.1:7400", "[2001:db8::1]:7400"],
                "2001:db8::1 is no loopback",
            ),
            (&["0.0.0.0:7400"], "0.0.0.0 is every address"),
            (&["[::]:7400"], ":: is every address"),
        ] {
            let said = refused(addresses).unwrap().to_string();
            for word in ["--listen node:7400", ip, "127.0.0.1:7400", "--allow-anyone"] {
                assert!(said.contains(word), "no {word} in: {said}");
            }
        }
    }

    #[test]
    fn a_name_is_what_it_leads_to() {
        let listener = listen("--listen", "localhost:0", false).unwrap();
        assert!(is_loopback(listener.local_addr().unwrap().ip()));
        let refused = listen("--http", "0.0.0.0:0", false).unwrap_err();
        assert!(refused.is::<UsageError>(), "{refused}");
        listen("--http", "0.0.0.0:0", true).unwrap();
    }
}
