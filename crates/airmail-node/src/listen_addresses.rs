//! Reachability of a node's listeners: by this machine alone, or by anyone.
//!
//! A node asks nobody who they are: whoever reaches it may do everything. So it listens where this machine
//! alone reaches it, unless the settings say that anyone may; and then that is told, at each start and for
//! as long as it runs.

use crate::config::Config;
use crate::config::hosts::is_loopback;
use airmail_model::{Error, ErrorCode};
use std::net::SocketAddr;

/// The setting that says where clients come in.
const CLIENTS: &str = "listen.address";

/// A listener of the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Door {
    /// Its name in metrics.
    pub(super) name: &'static str,
    /// The setting that says where it is.
    pub(super) setting: &'static str,
    /// Where it is.
    pub(super) address: SocketAddr,
}

impl Door {
    /// Whether other machines may reach it.
    pub(super) fn is_open(&self) -> bool {
        !is_loopback(self.address.ip())
    }
}

/// Lets listeners be where they are, and warns of what comes of it.
///
/// # Errors
/// `INVALID_ARGUMENT` for one beyond loopback, where not anyone may come.
pub(super) fn allow(doors: &[Door], config: &Config) -> Result<(), Error> {
    let open: Vec<&Door> = doors.iter().filter(|door| door.is_open()).collect();
    let clients = open.iter().find(|door| door.setting == CLIENTS);
    if let (true, Some(door)) = (config.trust_roles, clients) {
        return Err(Error::new(ErrorCode::InvalidArgument)
            .field(door.setting)
            .value(door.address)
            .limit("a loopback address, with security.trust_roles"));
    }
    match (config.allow_anyone, open.first()) {
        (false, None) => {}
        (false, Some(door)) => {
            return Err(Error::new(ErrorCode::InvalidArgument)
                .field(door.setting)
                .value(door.address)
                .limit("a loopback address, or listen.allow_anyone"));
        }
        (true, None) => {
            tracing::warn!("every listener is on loopback: --allow-anyone is not needed");
        }
        (true, Some(_)) => {
            for door in open {
                tracing::warn!(
                    door = door.name,
                    address = %door.address,
                    "anyone who reaches this address may do all that it offers, and is not asked who \
                     they are (--allow-anyone)"
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(address: &str, allow_anyone: bool) -> Result<(), Error> {
        let config = Config {
            allow_anyone,
            ..Config::default()
        };
        let door = |name, setting, address: &str| Door {
            name,
            setting,
            address: address.parse().unwrap(),
        };
        let grpc = door("grpc", "listen.address", "127.0.0.1:7400");
        let http = door("http", "http.address", address);
        allow(&[grpc, http], &config)
    }

    #[test]
    fn a_listener_beyond_loopback_is_refused_by_its_setting_unless_anyone_may_come() {
        for address in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert_eq!(allowed(address, false), Ok(()), "{address}");
            assert_eq!(allowed(address, true), Ok(()), "{address}");
        }
        for address in [
            "0.0.0.0:1",
            "[::]:1",
            "10.0.0.1:1",
            "[::ffff:10.0.0.1]:1",
            "[fe80::1]:1",
        ] {
            let error = allowed(address, false).unwrap_err();
            assert_eq!(
                (error.field_name(), error.found()),
                ("http.address", address)
            );
            assert!(error.expected().contains("listen.allow_anyone"));
            assert_eq!(allowed(address, true), Ok(()), "{address}");
        }
    }

    #[test]
    fn clients_from_beyond_loopback_are_never_believed_to_have_the_roles_that_they_name() {
        let config = Config {
            allow_anyone: true,
            trust_roles: true,
            ..Config::default()
        };
        let clients = |address: &str| Door {
            name: "grpc",
            setting: CLIENTS,
            address: address.parse().unwrap(),
        };
        assert_eq!(allow(&[clients("127.0.0.1:1")], &config), Ok(()));
        let error = allow(&[clients("0.0.0.0:1")], &config).unwrap_err();
        let facts = (error.field_name(), error.found());
        assert_eq!(facts, ("listen.address", "0.0.0.0:1"));
        assert!(error.expected().contains("security.trust_roles"));
    }
}
