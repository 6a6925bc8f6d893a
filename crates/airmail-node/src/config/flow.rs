//! Settings of the two flow gates: those of `airmail-flow` that a node's operator may choose.

use airmail_flow::{
    DELIVERY_LIMITER, GateSettings, GradientSettings, LadderSettings, LatencyTargetSettings,
    LimiterKind, LimiterSettings, PUBLISH_LIMITER, SettingsError, SharesSettings,
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
    /// N: acknowledged messages of a sample; `ladder` goes by time.
    pub publish_window: u64,
    /// The smallest change of the papers' limiters, in messages.
    pub publish_delta: u64,
    /// Latency that `gradient` gives up no throughput for, and the budget of `ladder`.
    pub publish_floor: Span,
    /// Latency that `latency-target` keeps.
    pub publish_target: Span,
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
            publish_limiter: Choice(Some(PUBLISH_LIMITER)),
            publish_in_flight: 256,
            publish_window: 1_000,
            publish_delta: 20,
            publish_floor: Span(Duration::from_millis(10)),
            publish_target: Span(Duration::from_millis(5)),
            publish_waiting: GateSettings::DEFAULT.waiting_messages_max,
            publish_wait: Span(Duration::from_millis(GateSettings::DEFAULT.wait_ms_max)),
            delivery_limiter: Choice(Some(DELIVERY_LIMITER)),
            delivery_in_flight: ByteSize(SharesSettings::DEFAULT.limiter.bound_initial),
        }
    }
}

impl FlowConfig {
    /// Settings of the publish gate; `None`: there is none.
    #[must_use]
    pub fn publish_gate(&self) -> Option<GateSettings> {
        let defaults = LimiterSettings::DEFAULT;
        let bound_initial = self.publish_in_flight;
        Some(GateSettings {
            window_messages: self.publish_window,
            waiting_messages_max: self.publish_waiting,
            wait_ms_max: milliseconds(self.publish_wait),
            limiter: LimiterSettings {
                kind: self.publish_limiter.0?,
                bound_initial,
                bound_max: defaults.bound_max.max(bound_initial),
                delta: self.publish_delta,
                gradient: GradientSettings {
                    latency_floor_ms: milliseconds(self.publish_floor),
                    ..GradientSettings::DEFAULT
                },
                ladder: LadderSettings {
                    budget_ms: milliseconds(self.publish_floor),
                    ..LadderSettings::DEFAULT
                },
                latency_target: LatencyTargetSettings {
                    target_us: microseconds(self.publish_target),
                    ..LatencyTargetSettings::DEFAULT
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
                    "target_us" => "flow.publish_target",
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

fn microseconds(span: Span) -> u64 {
    u64::try_from(span.0.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_gates_are_on_by_default_and_can_be_turned_off() {
        let mut config = FlowConfig::default();
        let gate = config.publish_gate().unwrap();
        assert_eq!(gate.limiter.kind, PUBLISH_LIMITER);
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
        assert_eq!(
            error,
            "off, fixed, last-three-points, adaptive, gradient, ladder, latency-target"
        );
        for name in ["off", "adaptive", "ladder", "latency-target"] {
            assert_eq!(name.parse::<Choice>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn floor_and_target_are_those_of_the_limiters_that_have_them() {
        let config = FlowConfig {
            publish_floor: Span(Duration::from_millis(20)),
            publish_target: Span(Duration::from_millis(3)),
            publish_in_flight: 2_000_000,
            ..FlowConfig::default()
        };
        let limiter = config.publish_gate().unwrap().limiter;
        assert_eq!(limiter.gradient.latency_floor_ms, 20);
        assert_eq!(limiter.ladder.budget_ms, 20);
        assert_eq!(limiter.latency_target.target_us, 3_000);
        assert_eq!(
            (limiter.bound_initial, limiter.bound_max),
            (2_000_000, 2_000_000)
        );
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
        let config = FlowConfig {
            publish_target: Span(Duration::ZERO),
            ..FlowConfig::default()
        };
        assert_eq!(config.check().unwrap_err().0, "flow.publish_target");
    }
}
