//! A shard that has no turns for a while, as a test wants it. In no release.

use std::str::FromStr;
use std::time::Duration;

/// A shard, and the time for which it has no turns: `1:20s@5s` holds shard 1 for 20 s, 5 s after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldShard {
    /// The shard's number.
    pub shard: u16,
    /// Time for which it has no turns.
    pub time: Duration,
    /// Time from its start.
    pub after: Duration,
}

impl FromStr for HeldShard {
    type Err = String;

    fn from_str(text: &str) -> Result<HeldShard, String> {
        let expected = || "SHARD:TIME@TIME, as 1:20s@5s".to_owned();
        let (shard, times) = text.split_once(':').ok_or_else(expected)?;
        let (time, after) = times.split_once('@').ok_or_else(expected)?;
        let length = |text| humantime::parse_duration(text).map_err(|_| expected());
        Ok(HeldShard {
            shard: shard.parse().map_err(|_| expected())?,
            time: length(time)?,
            after: length(after)?,
        })
    }
}

impl HeldShard {
    /// Holds the thread that polls this, if it is that shard's.
    pub(crate) async fn hold(self, shard: u16) {
        if shard == self.shard {
            tokio::time::sleep(self.after).await;
            tracing::warn!(shard, time = ?self.time, "this shard is held, as was asked for");
            std::thread::sleep(self.time);
            tracing::warn!(shard, "this shard goes on");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_names_a_shard_and_two_times() {
        let held = HeldShard {
            shard: 1,
            time: Duration::from_secs(20),
            after: Duration::from_secs(5),
        };
        assert_eq!("1:20s@5s".parse(), Ok(held));
        for text in ["", "1", "1:20s", "x:1s@1s", "1:1@1s", "1:1s@"] {
            assert!(text.parse::<HeldShard>().is_err(), "{text}");
        }
    }
}
