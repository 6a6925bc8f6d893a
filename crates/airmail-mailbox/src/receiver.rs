//! The column `receiver`, as both databases store it: an account, or 0 for broadcasts.

use airmail_model::mailbox::{AccountId, Recipients};

/// Converts recipients to a `receiver`.
pub(crate) fn receiver(recipients: Recipients) -> i32 {
    match recipients {
        Recipients::Direct(account) => account.0,
        Recipients::Broadcast => 0,
    }
}

/// Converts a `receiver` to recipients.
pub(crate) fn recipients(receiver: i32) -> Recipients {
    match receiver {
        0 => Recipients::Broadcast,
        account => Recipients::Direct(AccountId(account)),
    }
}
