//! Publish and subscribe with the SDK:
//!
//! ```text
//! cargo run -p airmail-client --example publish_subscribe [airmail://HOST:PORT]
//! ```

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use airmail_client::{Client, DEFAULT_URL, Error, Item};

const TOPIC: &str = "greetings";
const COUNT: usize = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let url = std::env::args()
        .nth(1)
        .unwrap_or_else(|| DEFAULT_URL.to_owned());
    let client = Client::connect(&url).await?;

    // From now on. `.from(Start::Earliest)`, a time or a position would begin in the past.
    let mut subscription = client.subscribe(TOPIC).open().await?;

    for number in 0..COUNT {
        let published = client
            .publish(TOPIC, format!("greeting {number}"))
            .attribute("lang", "en")
            .await?;
        println!("published as {}", published.sequence);
    }

    for _ in 0..COUNT {
        match subscription.next().await? {
            Some(Item::Message(message)) => {
                let text = String::from_utf8_lossy(&message.payload);
                println!("received {} {} {text}", message.sequence, message.topic());
            }
            Some(Item::Gap(gap)) => println!("missed {} to {}", gap.first, gap.last),
            Some(Item::Expired(gone)) => println!("{} has expired", gone.sequence),
            None => break,
        }
    }

    // Sends what is still under way, and waits for its acks.
    client.close().await
}
