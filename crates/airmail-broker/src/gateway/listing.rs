//! Listing topics: every log of the namespace is asked, page after page, and the answers merged.

use super::{Gateway, GatewayEffects};
use crate::input::{CommandId, Outcome};
use crate::link::ToTower;
use crate::storage_refusals;
use airmail_log::{Refusal, TopicPage, TopicSeen};
use airmail_model::bug;
use airmail_model::{Error, ErrorCode, LogId, NamespaceId};
use std::collections::BTreeMap;

/// Topics given if the caller sets no limit.
const LIMIT_DEFAULT: u32 = 1000;
/// The most topics given at a time.
const LIMIT_MAX: u32 = 10_000;

/// The listings under way.
#[derive(Debug, Default)]
pub(super) struct Listings {
    last: u64,
    open: BTreeMap<u64, Listing>,
}

impl Listings {
    /// Number of listings under way.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

#[derive(Debug)]
struct Listing {
    id: CommandId,
    page: TopicPage,
    parts: Vec<Part>,
}

/// Answer of one log.
#[derive(Debug)]
struct Part {
    log: LogId,
    topics: Vec<TopicSeen>,
    done: bool,
}

impl Gateway {
    pub(super) fn list_topics(
        &mut self,
        id: CommandId,
        namespace: NamespaceId,
        mut page: TopicPage,
        out: &mut GatewayEffects,
    ) -> Result<(), Error> {
        let Some(entry) = self.catalog().get(namespace).cloned() else {
            return Err(Error::new(ErrorCode::NamespaceNotFound)
                .field("namespace")
                .value(namespace));
        };
        let logs = Gateway::kept_logs(&entry);
        let elsewhere = |log: &&LogId| self.logs.elsewhere(**log).is_some();
        if let Some(log) = logs.iter().find(elsewhere) {
            return Err(self.not_open(*log));
        }
        if self.listings.open.len() >= self.config.listings {
            let limit = format!("{} at a time", self.config.listings);
            return Err(self.busy("listings").limit(limit));
        }
        page.limit = match page.limit {
            0 => LIMIT_DEFAULT,
            limit => limit.min(LIMIT_MAX),
        };
        self.listings.last += 1;
        let listing = self.listings.last;
        for (part, log) in logs.iter().enumerate() {
            out.tell(ToTower::Topics {
                listing,
                part,
                log: *log,
                page: Box::new(one_more(&page, page.after.clone())),
            });
        }
        let part = |log| Part {
            log,
            topics: Vec::new(),
            done: false,
        };
        let parts = logs.into_iter().map(part).collect();
        let listing_of = Listing { id, page, parts };
        self.listings.open.insert(listing, listing_of);
        Ok(())
    }

    /// The tower has a page of a log's topics, or the storage has refused it.
    pub(super) fn topics_told(
        &mut self,
        listing: u64,
        part: usize,
        result: Result<Vec<TopicSeen>, Refusal>,
        out: &mut GatewayEffects,
    ) {
        match result {
            Ok(found) => self.topics_found(listing, part, found, out),
            Err(why) => self.topics_refused(listing, part, &why, out),
        }
    }

    /// Takes a log's answer. A page that is not empty may have more behind it.
    fn topics_found(
        &mut self,
        number: u64,
        place: usize,
        found: Vec<TopicSeen>,
        out: &mut GatewayEffects,
    ) {
        let Some(listing) = self.listings.open.get_mut(&number) else {
            // Input: a listing that another log's refusal has ended.
            return;
        };
        let part = &mut listing.parts[place];
        part.done = found.is_empty();
        part.topics.extend(found);
        part.done |= part.topics.len() > listing.page.limit as usize;
        if !part.done {
            let after = part.topics.last().map(|topic| topic.name.clone());
            out.tell(ToTower::Topics {
                listing: number,
                part: place,
                log: part.log,
                page: Box::new(one_more(&listing.page, after.unwrap_or_default())),
            });
        }
        if listing.parts.iter().all(|part| part.done) {
            let id = listing.id;
            match self.listings.open.remove(&number) {
                Some(listing) => self.answer_command(id, Ok(merge(listing)), out),
                None => bug!("listing {number} of {id:?} went while it was looked at"),
            }
        }
    }

    fn topics_refused(
        &mut self,
        number: u64,
        place: usize,
        why: &Refusal,
        out: &mut GatewayEffects,
    ) {
        let Some(listing) = self.listings.open.remove(&number) else {
            // Input: a listing that another log's refusal has ended.
            return;
        };
        let error = storage_refusals::error(why, listing.parts[place].log, None);
        self.answer_command(listing.id, Err(error), out);
    }
}

/// The page to ask a log for: one more than wanted, to know whether there are more.
fn one_more(page: &TopicPage, after: String) -> TopicPage {
    TopicPage {
        prefix: page.prefix.clone(),
        after,
        limit: page.limit + 1,
    }
}

fn merge(listing: Listing) -> Outcome {
    let parts = listing.parts.into_iter();
    let mut topics: Vec<TopicSeen> = parts.flat_map(|part| part.topics).collect();
    topics.sort_by(|one, other| one.name.cmp(&other.name).then(other.last.cmp(&one.last)));
    topics.dedup_by(|later, first| later.name == first.name);
    let more = topics.len() > listing.page.limit as usize;
    topics.truncate(listing.page.limit as usize);
    Outcome::Topics { topics, more }
}
