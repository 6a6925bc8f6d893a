//! Addresses that a node can have again after its end. They are not from the system's own range: it
//! gives those to the next caller, also in another test, and a client that keeps trying could be
//! connected to itself.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// One that no other test of this process is given.
pub fn lasting_address() -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (std::process::id().wrapping_mul(97).wrapping_add(given)) % 10_000;
        let address = format!("127.0.0.1:{port}");
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}
