//! `airmail mailbox ack`, `extend` and `release`: settling of leased messages.

use super::shown::receipt_text;
use airmail_client::mailbox::{BATCH_MAX, LeaseId, Mailbox, MessageId, Receipt, Settle};
use airmail_model::quantity::Span;

/// Arguments of `airmail mailbox ack`.
#[derive(clap::Args, Debug)]
pub struct AckArgs {
    /// Receipts that `receive --lease` has printed
    #[arg(required = true, value_name = "RECEIPT", value_parser = receipt)]
    pub receipts: Vec<Receipt>,
}

/// Arguments of `airmail mailbox extend`.
#[derive(clap::Args, Debug)]
pub struct ExtendArgs {
    /// Receipts that `receive --lease` has printed
    #[arg(required = true, value_name = "RECEIPT", value_parser = receipt)]
    pub receipts: Vec<Receipt>,
    /// Time from now for which to keep them
    #[arg(long, value_name = "TIME")]
    pub lease: Span,
}

/// Arguments of `airmail mailbox release`.
#[derive(clap::Args, Debug)]
pub struct ReleaseArgs {
    /// Receipts that `receive --lease` has printed
    #[arg(required = true, value_name = "RECEIPT", value_parser = receipt)]
    pub receipts: Vec<Receipt>,
    /// Time from now before which they are not handed out again
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Span>,
}

fn receipt(text: &str) -> Result<Receipt, String> {
    let numbers = text.split_once(':').and_then(|(message, lease)| {
        let (message, lease) = (message.parse().ok()?, lease.parse().ok()?);
        Some(Receipt {
            message: MessageId(message),
            lease: LeaseId(lease),
        })
    });
    numbers.ok_or_else(|| "a receipt such as 17:3, as `receive --lease` prints it".to_owned())
}

/// Runs `ack`.
pub(super) async fn acknowledge(args: &AckArgs, mailbox: &Mailbox) -> anyhow::Result<()> {
    settle(&args.receipts, Settle::Acknowledge, mailbox).await
}

/// Runs `extend`.
pub(super) async fn extend(args: &ExtendArgs, mailbox: &Mailbox) -> anyhow::Result<()> {
    let lease_ms = millis(args.lease);
    settle(&args.receipts, Settle::Extend { lease_ms }, mailbox).await
}

/// Runs `release`.
pub(super) async fn release(args: &ReleaseArgs, mailbox: &Mailbox) -> anyhow::Result<()> {
    let delay_ms = args.delay.map_or(0, millis);
    settle(&args.receipts, Settle::Release { delay_ms }, mailbox).await
}

/// Settles all that can be, and fails with the first that cannot.
async fn settle(receipts: &[Receipt], what: Settle, mailbox: &Mailbox) -> anyhow::Result<()> {
    let mut failed = Ok(());
    for some in receipts.chunks(BATCH_MAX) {
        let settled = mailbox.settle(some, what).await?;
        for (settled, receipt) in settled.into_iter().zip(some) {
            failed = failed.and(settled.map_err(|error| error.value(receipt_text(*receipt))));
        }
    }
    failed.map_err(anyhow::Error::from)
}

fn millis(span: Span) -> u64 {
    u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_read_as_it_is_written() {
        let read = receipt("17:3").unwrap();
        assert_eq!(receipt_text(read), "17:3");
        for bad in ["", "17", "17:", ":3", "a:b", "1:2:3"] {
            assert!(receipt(bad).is_err(), "{bad}");
        }
    }
}
