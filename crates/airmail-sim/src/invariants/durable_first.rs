//! G1: nothing is acknowledged or delivered below its namespace's durability.

use super::{Checked, Violation};
use crate::files::Machine;
use crate::message::MessageId;
use airmail_model::Synced;

/// Checks a message at the moment at which someone is told of it.
///
/// # Errors
/// Its bytes are not where the durability says.
pub fn check(machine: &Machine, id: MessageId, durability: Synced, how: &str) -> Checked {
    let held = match durability {
        Synced::Memory => true,
        Synced::Os => machine.is_written(id),
        Synced::Fsync => machine.is_durable(id),
    };
    if held {
        return Ok(());
    }
    Err(Violation::new(
        "G1 durable before it is told",
        format!(
            "message {} {how} under {durability}, and is not so held",
            id.0
        ),
    ))
}
