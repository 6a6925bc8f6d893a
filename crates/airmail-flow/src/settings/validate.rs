//! Validation of settings: each relation between them, and the error that names the broken one.

use super::{
    AdaptiveSettings, GateSettings, GradientSettings, LadderSettings, LastThreePointsSettings,
    LatencyTargetSettings, LimiterSettings,
};
use std::fmt;

/// Settings that contradict themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SettingsError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: f64,
    /// The relation that has to hold.
    pub needed: &'static str,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, {}", self.field, self.value, self.needed)
    }
}

impl std::error::Error for SettingsError {}

impl GateSettings {
    /// Whether these settings can be used.
    ///
    /// # Errors
    /// The first field that cannot, with its value and the relation that has to hold.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let messages = self.window_messages as f64;
        holds(
            self.window_messages >= 1,
            "window_messages",
            messages,
            "must be at least 1",
        )?;
        let retry = self.retry_ms_max as f64;
        holds(
            self.retry_ms_max >= self.retry_ms_min,
            "retry_ms_max",
            retry,
            "must not be below retry_ms_min",
        )?;
        self.limiter.validate()
    }
}

impl LimiterSettings {
    /// Whether these settings can be used.
    ///
    /// # Errors
    /// The first field that cannot, with its value and the relation that has to hold.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let (min, max) = (self.bound_min, self.bound_max);
        holds(min >= 1, "bound_min", min as f64, "must be at least 1")?;
        holds(
            max >= min,
            "bound_max",
            max as f64,
            "must not be below bound_min",
        )?;
        let initial = self.bound_initial;
        let fits = (min..=max).contains(&initial);
        holds(
            fits,
            "bound_initial",
            initial as f64,
            "must be from bound_min to bound_max",
        )?;
        let share = self.busy_share;
        holds(
            (0.0..=1.0).contains(&share),
            "busy_share",
            share,
            "must be from 0 to 1",
        )?;
        self.last_three_points.validate()?;
        self.adaptive.validate()?;
        self.gradient.validate()?;
        self.ladder.validate()?;
        self.latency_target.validate()
    }
}

impl LastThreePointsSettings {
    fn validate(&self) -> Result<(), SettingsError> {
        let tolerance = self.collinear_tolerance;
        holds(
            tolerance >= 0.0,
            "collinear_tolerance",
            tolerance,
            "must not be below 0",
        )?;
        let windows = self.warm_up_windows;
        holds(
            windows >= 2,
            "warm_up_windows",
            f64::from(windows),
            "must be at least 2",
        )
    }
}

impl AdaptiveSettings {
    fn validate(&self) -> Result<(), SettingsError> {
        let (medium, high) = (self.slope_medium, self.slope_high);
        holds(medium > 0.0, "slope_medium", medium, "must be above 0")?;
        holds(
            high > medium,
            "slope_high",
            high,
            "must be above slope_medium",
        )
    }
}

impl GradientSettings {
    fn validate(&self) -> Result<(), SettingsError> {
        let weight = self.throughput_weight;
        holds(weight > 0.0, "throughput_weight", weight, "must be above 0")?;
        let (min, max, initial) = (self.step_min, self.step_max, self.step_initial);
        holds(min > 0.0, "step_min", min, "must be above 0")?;
        holds(max >= min, "step_max", max, "must not be below step_min")?;
        let fits = (min..=max).contains(&initial);
        holds(
            fits,
            "step_initial",
            initial,
            "must be from step_min to step_max",
        )?;
        let rest = self.rest_windows;
        holds(
            rest >= 1,
            "rest_windows",
            f64::from(rest),
            "must be at least 1",
        )?;
        let changed = self.changed_share;
        holds(changed > 0.0, "changed_share", changed, "must be above 0")
    }
}

impl LadderSettings {
    fn validate(&self) -> Result<(), SettingsError> {
        let share = self.throughput_share;
        holds(
            (0.5..1.0).contains(&share),
            "throughput_share",
            share,
            "must be from 0.5 to below 1",
        )?;
        let rest = self.rest_windows;
        holds(
            rest >= 2,
            "rest_windows",
            f64::from(rest),
            "must be at least 2",
        )
    }
}

impl LatencyTargetSettings {
    fn validate(&self) -> Result<(), SettingsError> {
        let target = self.target_us;
        holds(target >= 1, "target_us", target as f64, "must be above 0")?;
        let gain = self.gain;
        holds(
            gain > 0.0 && gain <= 1.0,
            "gain",
            gain,
            "must be above 0 and at most 1",
        )
    }
}

fn holds(
    holds: bool,
    field: &'static str,
    value: f64,
    needed: &'static str,
) -> Result<(), SettingsError> {
    if holds {
        Ok(())
    } else {
        Err(SettingsError {
            field,
            value,
            needed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_used() {
        assert_eq!(GateSettings::default().validate(), Ok(()));
    }

    #[test]
    fn settings_that_contradict_themselves_are_told_with_field_and_value() {
        let mut settings = GateSettings::default();
        settings.limiter.bound_max = 100;
        let error = settings.validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "bound_initial is 200, must be from bound_min to bound_max"
        );
        let mut settings = GateSettings::default();
        settings.limiter.gradient.step_min = f64::NAN;
        assert_eq!(settings.validate().unwrap_err().field, "step_min");
        let mut settings = GateSettings::default();
        settings.limiter.ladder.throughput_share = 1.0;
        assert_eq!(
            settings.validate().unwrap_err().to_string(),
            "throughput_share is 1, must be from 0.5 to below 1"
        );
        let mut settings = GateSettings::default();
        settings.limiter.latency_target.target_us = 0;
        assert_eq!(
            settings.validate().unwrap_err().to_string(),
            "target_us is 0, must be above 0"
        );
    }
}
