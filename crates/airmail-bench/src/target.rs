//! Systems that a URL can name.

use crate::part::Part;
use crate::progress::Progress;
use crate::run::{self, Alone, Job, Meeting};
use crate::system::Failure;
use crate::system::airmail::Airmail;
#[cfg(feature = "rivals")]
use crate::system::jetstream::JetStream;
#[cfg(feature = "rivals")]
use crate::system::kafka::{Kafka, KafkaPlace};
#[cfg(feature = "rivals")]
use crate::system::nats::Nats;
use crate::system::null::Null;
#[cfg(feature = "rivals")]
use crate::system::redis::Redis;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

/// A system that can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `airmail://HOST:PORT[,HOST:PORT…]`
    Airmail(String),
    /// `nats://HOST:PORT`
    #[cfg(feature = "rivals")]
    Nats(String),
    /// `jetstream://HOST:PORT`; kept as `nats://…`
    #[cfg(feature = "rivals")]
    JetStream(String),
    /// `redis://HOST:PORT`
    #[cfg(feature = "rivals")]
    Redis(String),
    /// `kafka://HOST:PORT[,HOST:PORT…][?replicas=N&linger_ms=N]`
    #[cfg(feature = "rivals")]
    Kafka(KafkaPlace),
    /// `null:`
    Null,
}

/// A URL that names no system that this program can measure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("target: {0} is none of airmail://…, null:{rivals}", rivals = RIVALS)]
pub struct UnknownTarget(String);

#[cfg(feature = "rivals")]
const RIVALS: &str = ", nats://…, jetstream://…, redis://…, kafka://…";
#[cfg(not(feature = "rivals"))]
const RIVALS: &str =
    "; for nats://…, jetstream://…, redis://… and kafka://… build it with --features rivals";

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(url: &str) -> Result<Target, UnknownTarget> {
        match url.split_once(':') {
            Some(("airmail", _)) => Ok(Target::Airmail(url.to_owned())),
            #[cfg(feature = "rivals")]
            Some(("nats", _)) => Ok(Target::Nats(url.to_owned())),
            #[cfg(feature = "rivals")]
            Some(("jetstream", rest)) => Ok(Target::JetStream(format!("nats:{rest}"))),
            #[cfg(feature = "rivals")]
            Some(("redis", _)) => Ok(Target::Redis(url.to_owned())),
            #[cfg(feature = "rivals")]
            Some(("kafka", rest)) => {
                let place = rest.trim_start_matches('/').parse();
                place
                    .map(Target::Kafka)
                    .map_err(|_| UnknownTarget(url.to_owned()))
            }
            Some(("null", "")) => Ok(Target::Null),
            _ => Err(UnknownTarget(url.to_owned())),
        }
    }
}

impl Target {
    /// Name of the system in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Target::Airmail(_) => "airmail",
            #[cfg(feature = "rivals")]
            Target::Nats(_) => "nats",
            #[cfg(feature = "rivals")]
            Target::JetStream(_) => "jetstream",
            #[cfg(feature = "rivals")]
            Target::Redis(_) => "redis",
            #[cfg(feature = "rivals")]
            Target::Kafka(_) => "kafka",
            Target::Null => "null",
        }
    }

    /// Runs a job against it, in this process alone. Boxed, so that it is compiled with this crate
    /// and not again by whoever waits for it.
    ///
    /// # Errors
    /// As [`Target::run`].
    pub fn run_alone(
        &self,
        job: Job,
        progress: Arc<Progress>,
    ) -> Pin<Box<dyn Future<Output = Result<Part, Failure>> + Send + '_>> {
        Box::pin(async move { self.run(job, &mut Alone, progress).await })
    }

    /// Runs a job against it.
    ///
    /// # Errors
    /// As [`run::run`]; and where the job asks for a durability of a system that has no choice.
    pub async fn run(
        &self,
        job: Job,
        meeting: &mut impl Meeting,
        progress: Arc<Progress>,
    ) -> Result<Part, Failure> {
        let airmail = matches!(self, Target::Airmail(_));
        if !airmail && job.settings.durability.is_some() {
            return Err(Failure::new("durability: only for airmail://"));
        }
        match self {
            Target::Airmail(url) => {
                let system = Airmail::new(url, &job);
                run::run(system, job, meeting, progress).await
            }
            #[cfg(feature = "rivals")]
            Target::Nats(url) => run::run(Nats::new(url), job, meeting, progress).await,
            #[cfg(feature = "rivals")]
            Target::JetStream(url) => run::run(JetStream::new(url), job, meeting, progress).await,
            #[cfg(feature = "rivals")]
            Target::Redis(url) => {
                let system = Redis::new(url, &job.settings)?;
                run::run(system, job, meeting, progress).await
            }
            #[cfg(feature = "rivals")]
            Target::Kafka(place) => {
                let system = Kafka::new(place, &job.settings);
                run::run(system, job, meeting, progress).await
            }
            Target::Null => run::run(Null::default(), job, meeting, progress).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_its_system() {
        let name = |url: &str| url.parse::<Target>().map(|target| target.name());
        assert_eq!(name("airmail://a,b"), Ok("airmail"));
        assert_eq!(name("null:"), Ok("null"));
        assert!(
            name("http://a")
                .unwrap_err()
                .to_string()
                .contains("http://a")
        );
    }
}
