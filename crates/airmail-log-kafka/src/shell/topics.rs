//! Topics of a cluster: what each order does.
//!
//! Of requests for settings, rdkafka has the older one alone, which sets *all* of a topic's own settings and takes away
//! those that are not named. So an alteration reads them first and names them all. Two alterations of one topic at the
//! same time may then undo each other; whoever alters compares with what is described, again and again, and puts it
//! right. And rdkafka drops the error of a single resource: an alteration that was refused looks like one that was made,
//! and a description like one of nothing. So an alteration is done when it is described, and a description of nothing
//! has failed.

use super::clock::now;
use super::error::{failure, failure_of};
use super::finder::leaders;
use super::news::News;
use super::routes::closing;
use super::wait::wait_for;
use crate::brokers::{Answer, Described, Failure, Order, Partition, Settings, Topic};
use crate::place::Offset;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigEntry, ConfigSource, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::{ClientConfig, metadata::Metadata};
use std::future::Future;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Time between looks at whether a change is seen.
const LOOK: Duration = Duration::from_millis(50);
/// Time in which an alteration is described by every broker.
const ALTERED: Duration = Duration::from_secs(5);
/// Time in which a broker says what it knows of a topic, unless it has gone.
const BROKER: Duration = Duration::from_secs(2);
/// The first version of which a broker has no [`VERSION_SETTING`].
const VERSION_WITHOUT: u8 = 4;
/// Setting of a broker that names the version of its interface, up to 3.9.
const VERSION_SETTING: &str = "inter.broker.protocol.version";

type Answered = Result<Answer, Failure>;

/// A client that changes topics, and describes them.
pub(super) struct Topics {
    client: AdminClient<DefaultClientContext>,
    news: Arc<News>,
}

impl Topics {
    /// Makes the client.
    pub(super) fn connect(config: &ClientConfig, news: &Arc<News>) -> KafkaResult<Topics> {
        Ok(Topics {
            client: config.create()?,
            news: Arc::clone(news),
        })
    }

    /// Carries an order out, by then or not at all as far as is known.
    pub(super) fn carry_out(&self, order: &Order, until: Instant) -> Answered {
        let done = self.try_to(order, until);
        match (order, &done) {
            (Order::Alter { topic, settings }, Ok(_)) => {
                tracing::info!(%topic, ?settings, "a topic's settings are changed");
            }
            (Order::Alter { topic, settings }, Err(why)) => {
                tracing::warn!(%topic, ?settings, ?why, "a topic's settings are not changed");
            }
            (Order::Delete { topic }, Ok(_)) => tracing::info!(%topic, "a topic is deleted"),
            _ => {}
        }
        done
    }

    fn try_to(&self, order: &Order, until: Instant) -> Answered {
        match order {
            Order::Create {
                topic,
                partitions,
                replicas,
                settings,
            } => self.create(topic, *partitions, *replicas, settings, until),
            Order::Describe { topic } => self.describe(topic, until),
            Order::Alter { topic, settings } => self.alter(topic, settings, until),
            Order::Delete { topic } => self.delete(topic, until),
            Order::DeleteRecords { partition, before } => {
                self.delete_records(partition, *before, until)
            }
            Order::List { prefix } => self.list(prefix, until),
            Order::Version => self.version(until),
        }
    }

    fn create(
        &self,
        topic: &Topic,
        partitions: u16,
        replicas: u8,
        settings: &Settings,
        until: Instant,
    ) -> Answered {
        let copies = TopicReplication::Fixed(replicas.into());
        let mut new = NewTopic::new(topic.as_str(), partitions.into(), copies);
        for (name, value) in settings {
            new = new.set(name, value);
        }
        let made = self.wait(self.client.create_topics([&new], &options(until)), until)?;
        each(made)?;
        self.see(until, || {
            let metadata = self.metadata(Some(topic), until)?;
            let leaders = topic_leaders(&metadata, topic);
            // A broker that has not heard of it yet says that there is none.
            let is_led = |leaders: Vec<i32>| {
                leaders.len() == usize::from(partitions) && leaders.iter().all(|one| *one >= 0)
            };
            Ok(leaders.is_ok_and(is_led))
        })?;
        self.see_everywhere(topic, until, |entries| !entries.is_empty())
    }

    fn describe(&self, topic: &Topic, until: Instant) -> Answered {
        let metadata = self.metadata(Some(topic), until)?;
        topic_leaders(&metadata, topic)?;
        let named = metadata
            .topics()
            .iter()
            .find(|one| one.name() == topic.as_str());
        let partitions = named.map_or(&[][..], |one| one.partitions());
        let fewest = partitions.iter().map(|one| one.replicas().len()).min();
        let entries = self.settings(topic, until)?;
        let settings = entries.into_iter();
        let settings = settings.filter_map(|entry| Some((entry.name, entry.value?)));
        Ok(Answer::Described(Box::new(Described {
            partitions: u16::try_from(partitions.len()).unwrap_or(u16::MAX),
            replicas: u8::try_from(fewest.unwrap_or(0)).unwrap_or(u8::MAX),
            settings: settings.collect(),
        })))
    }

    fn alter(&self, topic: &Topic, settings: &Settings, until: Instant) -> Answered {
        let mut all = Settings::new();
        for entry in self.settings(topic, until)? {
            if let (ConfigSource::DynamicTopic, Some(value)) = (entry.source, entry.value) {
                all.insert(entry.name, value);
            }
        }
        all.extend(settings.clone());
        let mut change = AlterConfig::new(ResourceSpecifier::Topic(topic.as_str()));
        for (name, value) in &all {
            change = change.set(name, value);
        }
        let altered = self.wait(self.client.alter_configs([&change], &options(until)), until)?;
        for one in altered {
            one.map_err(|(_, code)| failure_of(code))?;
        }
        let seen = self.see_everywhere(topic, until.min(now() + ALTERED), |entries| {
            let is_set = |(name, value): (&String, &String)| {
                let mut same = entries.iter().filter(|entry| entry.name == *name);
                same.any(|entry| entry.value.as_ref() == Some(value))
            };
            settings.iter().all(is_set)
        });
        match seen {
            Err(Failure::TimedOut) if left(until).is_some() => {
                let why = "the brokers do not describe the settings as they were altered";
                Err(Failure::Other(why.to_owned()))
            }
            seen => seen,
        }
    }

    fn delete(&self, topic: &Topic, until: Instant) -> Answered {
        let names = [topic.as_str()];
        let gone = self.wait(self.client.delete_topics(&names, &options(until)), until)?;
        each(gone)?;
        self.see_everywhere(topic, until, <[ConfigEntry]>::is_empty)
    }

    fn delete_records(&self, partition: &Partition, before: Offset, until: Instant) -> Answered {
        let (topic, number) = (partition.topic.as_str(), partition.number.0.into());
        let before = i64::try_from(before.0).unwrap_or(i64::MAX);
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(topic, number, rdkafka::Offset::Offset(before))
            .map_err(|error| failure(&error))?;
        let cut = self.wait(self.client.delete_records(&list, &options(until)), until);
        let cut = cut.or_else(|error| {
            // Where nobody leads the partition, librdkafka does not say why.
            let metadata = self.metadata(Some(&partition.topic), until)?;
            let leaders = topic_leaders(&metadata, &partition.topic)?;
            let is_there = usize::from(partition.number.0) < leaders.len();
            Err(if is_there { error } else { Failure::NoTopic })
        })?;
        for element in cut.elements() {
            element.error().map_err(|error| failure(&error))?;
        }
        Ok(Answer::Done)
    }

    fn list(&self, prefix: &str, until: Instant) -> Answered {
        let metadata = self.metadata(None, until)?;
        let names = metadata.topics().iter().map(|topic| topic.name());
        let mut topics: Vec<Topic> = names
            .filter(|name| name.starts_with(prefix))
            .map(Topic::new)
            .collect();
        topics.sort();
        Ok(Answer::Topics(topics))
    }

    fn version(&self, until: Instant) -> Answered {
        let metadata = self.metadata(None, until)?;
        let mut major = u8::MAX;
        for broker in metadata.brokers() {
            let entries = self.entries(ResourceSpecifier::Broker(broker.id()), None, until)?;
            let named = entries.into_iter().find(|one| one.name == VERSION_SETTING);
            major = major.min(match named {
                None => VERSION_WITHOUT,
                Some(entry) => major_of(&entry.value.unwrap_or_default()),
            });
        }
        if metadata.brokers().is_empty() {
            return Err(Failure::TimedOut);
        }
        Ok(Answer::Version { major })
    }

    fn settings(&self, topic: &Topic, until: Instant) -> Result<Vec<ConfigEntry>, Failure> {
        let of = ResourceSpecifier::Topic(topic.as_str());
        let entries = self.entries(of, None, until)?;
        if entries.is_empty() {
            topic_leaders(&self.metadata(Some(topic), until)?, topic)?;
            return Err(Failure::Other("no settings were told".to_owned()));
        }
        Ok(entries)
    }

    /// Settings as any broker knows them, or as one does; none of a topic that it does not know.
    fn entries(
        &self,
        of: ResourceSpecifier<'_>,
        broker: Option<i32>,
        until: Instant,
    ) -> Result<Vec<ConfigEntry>, Failure> {
        let options = options(until).broker_id(broker);
        let described = self.client.describe_configs([&of], &options);
        let mut entries = Vec::new();
        for one in self.wait(described, until)? {
            entries.extend(one.map_err(failure_of)?.entries);
        }
        Ok(entries)
    }

    /// Asks a broker what it knows of a topic, or of all. It is asked again and again, so that closing waits for one attempt at most.
    fn metadata(&self, topic: Option<&Topic>, until: Instant) -> Result<Metadata, Failure> {
        loop {
            let left = left(until).ok_or(Failure::TimedOut)?;
            let client = self.client.inner();
            let found = client.fetch_metadata(topic.map(Topic::as_str), left.min(BROKER));
            match found.map_err(|error| failure(&error)) {
                Err(Failure::TimedOut) if self.news.is_closing() => return Err(closing()),
                // A broker that is gone fails at once.
                Err(Failure::TimedOut) => thread::sleep(LOOK),
                found => return found,
            }
        }
    }

    /// Waits until a change is seen in the settings of a topic on every broker that answers; none are those of a
    /// topic that the broker does not know.
    fn see_everywhere(
        &self,
        topic: &Topic,
        until: Instant,
        is_seen: impl Fn(&[ConfigEntry]) -> bool,
    ) -> Answered {
        let metadata = self.metadata(Some(topic), until)?;
        for broker in metadata.brokers() {
            let of = ResourceSpecifier::Topic(topic.as_str());
            self.see(until, || {
                let told = self.entries(of, Some(broker.id()), now() + BROKER);
                // One that says nothing, or has gone, learns of it before it says anything again.
                Ok(told.is_err() || told.is_ok_and(|entries| is_seen(&entries)))
            })?;
        }
        Ok(Answer::Done)
    }

    /// Waits until a change is seen.
    fn see(&self, until: Instant, is_seen: impl Fn() -> Result<bool, Failure>) -> Answered {
        loop {
            if is_seen()? {
                return Ok(Answer::Done);
            }
            if self.news.is_closing() {
                return Err(closing());
            }
            left(until).ok_or(Failure::TimedOut)?;
            thread::sleep(LOOK);
        }
    }

    fn wait<T>(
        &self,
        future: impl Future<Output = KafkaResult<T>>,
        until: Instant,
    ) -> Result<T, Failure> {
        match wait_for(future, until, || self.news.is_closing()) {
            Some(done) => done.map_err(|error| failure(&error)),
            None if self.news.is_closing() => Err(closing()),
            None => Err(Failure::TimedOut),
        }
    }
}

/// Time that is left, if any is.
fn left(until: Instant) -> Option<Duration> {
    let left = until.saturating_duration_since(now());
    (left >= Duration::from_millis(1)).then_some(left)
}

/// Options of a request that is to be answered by then.
fn options(until: Instant) -> AdminOptions {
    let left = left(until).unwrap_or(Duration::from_millis(1));
    AdminOptions::new()
        .request_timeout(Some(left))
        .operation_timeout(Some(left))
}

/// The failure of any of the topics that an order was about.
fn each(results: Vec<Result<String, (String, Code)>>) -> Result<(), Failure> {
    for result in results {
        result.map_err(|(_, code)| failure_of(code))?;
    }
    Ok(())
}

fn topic_leaders(metadata: &Metadata, topic: &Topic) -> Result<Vec<i32>, Failure> {
    let found = metadata
        .topics()
        .iter()
        .find(|one| one.name() == topic.as_str());
    leaders(found.ok_or(Failure::NoTopic)?)
}

/// The major version in the name of a broker's interface, such as `3.9-IV0`; 0 if there is none.
fn major_of(name: &str) -> u8 {
    let digits = name.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_stands_before_the_first_point() {
        assert_eq!(major_of("3.9-IV0"), 3);
        assert_eq!(major_of("2.8"), 2);
        assert_eq!(major_of("0.10.2-IV0"), 0);
        assert_eq!(major_of(""), 0);
    }
}
