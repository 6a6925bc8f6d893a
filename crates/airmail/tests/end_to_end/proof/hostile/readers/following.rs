//! One subscription of the SDK, which notes its deliveries and gaps.

use crate::proof::hostile::history::{Begin, Event, History, Hole, Place};
use crate::proof::load::Topic;
use crate::proof::stamp::Stamp;
use airmail_client::{ClientBuilder, Error, Item, Position, Start};
use std::sync::Arc;
use tokio::sync::Notify;

/// One subscription.
pub(super) struct Following {
    pub(super) id: usize,
    /// The start with which it begins; `None`: it has begun before.
    pub(super) begins: Option<Begin>,
    pub(super) topic: Topic,
    pub(super) start: Start,
    pub(super) stop: Arc<Notify>,
    pub(super) history: Arc<History>,
}

impl Following {
    /// Runs until it is stopped; gives its position then. What ends it otherwise is noted as wrong.
    pub(super) async fn run(self, client: ClientBuilder) -> Option<Position> {
        let at = match &self.start {
            Start::Position(position) => Some(position.clone()),
            _ => None,
        };
        let stop = Arc::clone(&self.stop);
        let stopped = stop.notified();
        tokio::pin!(stopped);
        let opening = async {
            let client = client.connect().await?;
            let request = client.subscribe(&self.topic.name);
            let request = request.namespace(self.topic.namespace);
            let opened = request.from(self.start.clone()).open().await?;
            Ok::<_, Error>((client, opened))
        };
        let opened = tokio::select! {
            opened = opening => opened,
            () = &mut stopped => return at,
        };
        let (client, mut subscription) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.wrong(format!("cannot subscribe: {error}"));
                return at;
            }
        };
        if let Some(from) = self.begins {
            self.history.note(Event::Began {
                reader: self.id,
                topic: self.topic.index,
                from,
            });
        }
        loop {
            let item = tokio::select! {
                item = subscription.next() => item,
                () = &mut stopped => break,
            };
            match item {
                Ok(Some(item)) => self.note(&item),
                other => {
                    self.wrong(format!("ended: {other:?}"));
                    break;
                }
            }
        }
        let position = subscription.position().or(at);
        drop(subscription);
        client.close().await.ok();
        position
    }

    fn note(&self, item: &Item) {
        let reader = self.id;
        let message = match item {
            Item::Gap(gap) => {
                let gap = Hole {
                    first: gap.first.0,
                    last: gap.last.0,
                    reason: gap.reason,
                };
                self.history.note(Event::Told { reader, gap });
                return;
            }
            Item::Expired(gone) => return self.wrong(format!("nothing expires: {gone:?}")),
            Item::Message(message) => message,
        };
        let stamp = Stamp::read(&message.payload);
        let Some(stamp) = stamp.filter(|stamp| stamp.topic == self.topic.index) else {
            let number = message.sequence.0;
            self.wrong(format!(
                "was given what nobody published to it: number {number}"
            ));
            return;
        };
        let place = Place {
            life: message.position().logs[0].incarnation.0,
            number: message.sequence.0,
        };
        self.history.note(Event::Given {
            reader,
            place,
            stamp,
        });
    }

    fn wrong(&self, why: String) {
        let reader = self.id;
        self.history.note(Event::Wrong { reader, why });
    }
}
