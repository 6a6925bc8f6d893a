//! Settings of the two flow gates: those of `airmail-flow` that a node's operator may choose.

use airmail_flow::{
    GateSettings, GradientSettings, LimiterKind, LimiterSettings, SettingsError, SharesSettings,
};
use airmail_model::quantity::{ByteSize, Span};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A limiter, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice(pub Option<LimiterKind>);

/// Word for no limiter.
const OFF: &str = "off";

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or(OFF, LimiterKind::name))
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        if text == OFF {
            return Ok(Choice(None));
        }
        let kind = text.parse();
        let names = LimiterKind::ALL.map(LimiterKind::name).join(", ");
        kind.map(|kind| Choice(Some(kind)))
            .map_err(|_| format!("{OFF}, {names}"))
    }
}

/// Settings of section `flow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// Limiter of the published messages in flight.
    pub publish_limiter: Choice,
    /// Its first bound, in messages; `fixed` keeps it.
    pub publish_in_flight: u64,
    /// N: acknowledged messages of a sample.
    pub publish_window: u64,
    /// The smallest change of the papers' limiters, in messages.
    pub publish_delta: u64,
    /// Latency that `gradient` gives up no throughput for.
    pub publish_floor: Span,
    /// Messages that may wait to be in flight.
    pub publish_waiting: u64,
    /// Time that one may wait.
    pub publish_wait: Span,
    /// Limiter of the deliveries in flight.
    pub delivery_limiter: Choice,
    /// Its first and least bound, in bytes; `fixed` keeps it.
    pub delivery_in_flight: ByteSize,
}

impl Default for FlowConfig {
    fn default() -> FlowConfig {
        FlowConfig {
            publish_limiter: Choice(Some(LimiterKind::Gradient)),
            publish_in_flight: 256,
            publish_window: 1_000,
            publish_delta: 20,
            publish_floor: Span(Duration::from_millis(10)),
            publish_waiting: GateSettings::DEFAULT.waiting_messages_max,
            publish_wait: Span(Duration::from_millis(GateSettings::DEFAULT.wait_ms_max)),
            delivery_limiter: Choice(Some(LimiterKind::Gradient)),
            delivery_in_flight: ByteSize(SharesSettings::DEFAULT.limiter.bound_initial),
        }
    }
}

impl FlowConfig {
    /// Settings of the publish gate; `None`: there is none.
    #[must_use]
    pub fn publish_gate(&self) -> Option<GateSettings> {
        let defaults = LimiterSettings::DEFAULT;
        Some(GateSettings {
            window_messages: self.publish_window,
            waiting_messages_max: self.publish_waiting,
            wait_ms_max: milliseconds(self.publish_wait),
            limiter: LimiterSettings {
                kind: self.publish_limiter.0?,
                bound_initial: self.publish_in_flight,
                bound_max: defaults.bound_max.max(self.publish_in_flight),
                delta: self.publish_delta,
                gradient: GradientSettings {
                    latency_floor_ms: milliseconds(self.publish_floor),
                    ..GradientSettings::DEFAULT
                },
                ..defaults
            },
            ..GateSettings::DEFAULT
        })
    }

    /// Settings of the delivery gate; `None`: there is none.
    #[must_use]
    pub fn delivery_gate(&self) -> Option<SharesSettings> {
        let defaults = SharesSettings::DEFAULT;
        let least = self.delivery_in_flight.0;
        Some(SharesSettings {
            limiter: LimiterSettings {
                kind: self.delivery_limiter.0?,
                bound_initial: least,
                bound_min: least,
                bound_max: defaults.limiter.bound_max.max(least),
                ..defaults.limiter
            },
            ..defaults
        })
    }

    /// Whether these settings can be used.
    ///
    /// # Errors
    /// The first that cannot: the setting, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, SettingsError)> {
        if let Some(gate) = self.publish_gate() {
            gate.validate().map_err(|error| {
                let setting = match error.field {
                    "window_messages" => "flow.publish_window",
                    _ => "flow.publish_in_flight",
                };
                (setting, error)
            })?;
        }
        let delivery = self.delivery_gate().map(|gate| gate.limiter.validate());
        delivery
            .unwrap_or(Ok(()))
            .map_err(|error| ("flow.delivery_in_flight", error))
    }
}

fn milliseconds(span: Span) -> u64 {
    u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_gates_are_on_by_default_and_can_be_turned_off() {
        let mut config = FlowConfig::default();
        let gate = config.publish_gate().unwrap();
        assert_eq!(gate.limiter.kind, LimiterKind::Gradient);
        assert_eq!(gate.validate(), Ok(()));
        assert!(config.delivery_gate().is_some());
        config.publish_limiter = "off".parse().unwrap();
        config.delivery_limiter = "off".parse().unwrap();
        assert_eq!(
            (config.publish_gate(), config.delivery_gate()),
            (None, None)
        );
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn a_limiter_that_there_is_not_is_told_with_those_that_there_are() {
        let error = "vegas".parse::<Choice>().unwrap_err();
        assert_eq!(error, "off, fixed, last-three-points, adaptive, gradient");
        for name in ["off", "adaptive"] {
            assert_eq!(name.parse::<Choice>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let config = FlowConfig {
            publish_in_flight: 0,
            ..FlowConfig::default()
        };
        assert_eq!(config.check().unwrap_err().0, "flow.publish_in_flight");
        let config = FlowConfig {
            publish_window: 0,
            ..FlowConfig::default()
        };
        assert_eq!(config.check().unwrap_err().0, "flow.publish_window");
    }
}
