//! The cluster as one of its brokers describes it, over a plain connection: one request, one
//! answer.
//!
//! No TLS and no SASL: a cluster that asks for them is described by a file instead.

use super::metadata;
use airmail_topology::Description;
use anyhow::{Context as _, ensure};
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// Longest time to reach a broker, and to wait for its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer: some hundred bytes for each of a million partitions.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Asks the brokers, HOST:PORT with commas between, until one answers.
///
/// # Errors
/// None of them does; the error is the last one's.
pub(super) fn describe(brokers: &str) -> anyhow::Result<Description> {
    let mut last = None;
    for broker in brokers.split(',').map(str::trim) {
        match ask(broker) {
            Ok(description) => return Ok(description),
            Err(error) => last = Some(error.context(format!("--bootstrap {broker}"))),
        }
    }
    Err(last.unwrap_or_else(|| anyhow::anyhow!("--bootstrap: names no broker")))
}

fn ask(broker: &str) -> anyhow::Result<Description> {
    let mut addresses = broker.to_socket_addrs().context("is not HOST:PORT")?;
    let address = addresses.next().context("has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&metadata::request())?;
    let mut length = [0; 4];
    let closed = "closed the connection: is this a Kafka listener without TLS and SASL?";
    stream.read_exact(&mut length).context(closed)?;
    let length = u32::from_be_bytes(length) as usize;
    ensure!(
        length <= ANSWER_BYTES_MAX,
        "answers with {length} bytes, at most {ANSWER_BYTES_MAX}: is this a Kafka listener without TLS?"
    );
    let mut answer = Vec::new();
    let read = stream.take(length as u64).read_to_end(&mut answer)?;
    ensure!(read == length, "sent {read} bytes of {length}");
    Ok(metadata::read(&answer)?)
}
