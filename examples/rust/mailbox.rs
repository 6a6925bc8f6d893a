//! Put work in a queue and do it, each piece once:
//!
//! ```text
//! cargo run -p airmail-client --example mailbox [airmail://HOST:PORT]
//! ```

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use airmail_client::mailbox::{AccountId, Mailbox, Outgoing, Recipients};
use airmail_client::mailbox::{QueueSettings, Receive, Take};
use airmail_client::{DEFAULT_URL, Error, ErrorCode};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::args()
        .nth(1)
        .unwrap_or_else(|| DEFAULT_URL.to_owned());
    let mailbox = Mailbox::connect(&url).await?;
    let shop = account(&mailbox, "shop").await?;
    let kitchen = account(&mailbox, "kitchen").await?;
    let orders = match mailbox
        .create_queue("orders", QueueSettings::default())
        .await
    {
        Err(error) if error.code() == ErrorCode::QueueNameExists => {
            mailbox.find_queue("orders").await?
        }
        created => created?,
    };

    let order =
        |dish: &str| Outgoing::new(orders, shop, Recipients::Direct(kitchen), dish.to_owned());
    let messages = ["soup", "bread", "tea"].map(order);
    for sent in mailbox.send_all(messages.to_vec()).await {
        println!("sent as {}", sent?);
    }

    // Under a lease: who dies before the acknowledgement has not lost the message.
    let request = Receive::new(orders, kitchen).take(Take::Lease { lease_ms: 30_000 });
    for _ in 0..messages.len() {
        for message in mailbox.receive(request, Duration::from_secs(5)).await? {
            let text = String::from_utf8_lossy(&message.content);
            println!("received {} {text}", message.id);
            mailbox.acknowledge(message.receipt()).await?;
        }
    }
    Ok(())
}

/// The account of a name, made if it is not there.
async fn account(mailbox: &Mailbox, name: &str) -> Result<AccountId, Error> {
    match mailbox.create_account(name).await {
        Err(error) if error.code() == ErrorCode::AccountNameExists => {
            mailbox.find_account(name).await
        }
        created => created,
    }
}
