//! Settings of a partitioner.

use crate::policy::Policy;
use std::time::Duration;

/// Where turns begin at the latest: what 31 bits hold.
const START_MAX: u32 = i32::MAX.cast_unsigned();
const STICKY_MAX: Duration = Duration::from_secs(60);
const TOLERANCE_MAX: f64 = 100.0;

/// A partitioner's settings; those behind `sticky_bytes` are of [`Policy::Adaptive`] alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The policy that places records without a key.
    pub policy: Policy,
    /// Whether keys are not looked at: the paper's way, in which Node and SQF ignore them. Default: records
    /// with a key go where Kafka puts them.
    pub ignore_keys: bool,
    /// Where turns begin, at most 2147483647. Producers that all begin at 0 go in step.
    pub start: u32,
    /// Seed of the random choices of [`Policy::Adaptive`].
    pub seed: u64,
    /// Bytes for a partition before the next choice. Default 16,384, a batch.
    pub sticky_bytes: u32,
    /// The longest time between two choices, from 1 ms to 60 s; not below the producer's linger time, which
    /// would cut a batch into several. Default 100 ms.
    pub sticky: Duration,
    /// Time in which a latency that is not seen again loses weight to 1/e, from 1 ms to 60 s.
    /// Default 150 ms.
    pub decay: Duration,
    /// Factor by which a node may be worse than another and still have its turn, from 1 to 100.
    /// Default 2.
    pub tolerance: f64,
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value}: {limit}")]
pub struct SettingInvalid {
    /// The setting.
    pub field: &'static str,
    /// The value given.
    pub value: String,
    /// The values allowed.
    pub limit: &'static str,
}

impl Settings {
    /// The defaults of a policy; turns begin somewhere that follows from the seed.
    #[must_use]
    pub fn new(policy: Policy, seed: u64) -> Settings {
        Settings {
            policy,
            ignore_keys: false,
            start: (seed >> 33) as u32,
            seed,
            sticky_bytes: 16_384,
            sticky: Duration::from_millis(100),
            decay: Duration::from_millis(150),
            tolerance: 2.0,
        }
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// The first setting that is outside its own.
    pub fn validate(&self) -> Result<(), SettingInvalid> {
        let wrong = |field, value: String, limit| {
            Err(SettingInvalid {
                field,
                value,
                limit,
            })
        };
        if self.start > START_MAX {
            return wrong("start", self.start.to_string(), "at most 2147483647");
        }
        for (field, time) in [("sticky", self.sticky), ("decay", self.decay)] {
            if time < Duration::from_millis(1) || time > STICKY_MAX {
                return wrong(field, format!("{time:?}"), "from 1 ms to 60 s");
            }
        }
        if !(1.0..=TOLERANCE_MAX).contains(&self.tolerance) {
            return wrong("tolerance", self.tolerance.to_string(), "from 1 to 100");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_every_policy_are_within_bounds() {
        for policy in Policy::ALL {
            assert_eq!(Settings::new(policy, u64::MAX).validate(), Ok(()));
        }
    }

    #[test]
    fn a_setting_outside_its_bounds_is_named() {
        let settings = Settings::new(Policy::Node, 1);
        let refused = |settings: Settings| settings.validate().unwrap_err().field;
        let start = 1 << 31;
        assert_eq!(
            refused(Settings {
                start,
                ..settings.clone()
            }),
            "start"
        );
        let sticky = Duration::ZERO;
        assert_eq!(
            refused(Settings {
                sticky,
                ..settings.clone()
            }),
            "sticky"
        );
        let decay = Duration::from_secs(61);
        assert_eq!(
            refused(Settings {
                decay,
                ..settings.clone()
            }),
            "decay"
        );
        let tolerance = f64::NAN;
        assert_eq!(
            refused(Settings {
                tolerance,
                ..settings
            }),
            "tolerance"
        );
    }
}
